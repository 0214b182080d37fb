// Inside lib/dist only: what carries tensors of the GPU from GPU to GPU between the ranks of a
// group, each of which has its own. There is one: NCCL (nccl_cuda.cc).
//
// What is carried is ordered by events, and the host waits for nothing: it begins after what was
// queued on the compute stream before, on a stream of the group's own; Pending::wait() has the
// compute stream wait for its end. A Pending keeps the tensors until then; one that is dropped
// without wait() waits in the same way. The operations of a group are done one after the other, in
// the order of the calls: so two ranks that send each other something exchange() it.
// Errors: NCCL's text, the operation, axis, rank and host. A rank that failed, or is silent for the
// section's limit, shows at the next call or wait of the others. Thread-safety: the thread that
// drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "dist/group.h"

namespace vfm::dist {

class DeviceCarrier {
 public:
  virtual ~DeviceCarrier() = default;
  /// `place` is for errors: "all_gather of F32 elements [2 2] (3 of 'tp')".
  virtual std::unique_ptr<Pending> start(const Call& call, const std::string& place) = 0;
};

/// World::section(), for those who wait beside the thread that called it.
struct Section {
  std::atomic<double> limit{0};  ///< seconds; 0: none
};

/// Why this build or machine has no NCCL; empty: it has. Opens NCCL.
std::string why_no_nccl();

/// A collective of `group`, of two or more ranks, by whose host tensors they agree. `where` is for
/// errors: "rank 3 on host b". `ordered`: sums of floats add in the order of the ranks, at the cost
/// of dist/message_group.h's staging on the GPU; else as NCCL likes to, the same on all ranks.
std::unique_ptr<DeviceCarrier> nccl_carrier(Group& group, const std::string& where, bool ordered,
                                            std::shared_ptr<const Section> section);

}  // namespace vfm::dist

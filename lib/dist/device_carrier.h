// Inside lib/dist only: carries GPU tensors from GPU to GPU between the ranks of a group, each of
// which has a GPU of its own. NCCL is the only implementation (nccl_cuda.cc).
//
// Transfers are ordered by CUDA events, and the host does not wait. A transfer runs on a stream of
// the group, after the work that was queued on the compute stream before the call. Pending::wait()
// makes the compute stream wait for the end of the transfer. A Pending keeps the tensors until
// wait(); if it is destroyed before, the compute stream waits in the same way. The operations of a
// group run one after another, in the order of the calls, so two ranks that send each other
// something use exchange().
// Errors: NCCL's text, the operation, axis, rank and host. If a rank fails, or is silent for the
// section's limit, the next call or wait of the other ranks throws. Thread-safety: the thread that
// drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "dist/group.h"
#include "dist/section_times.h"

namespace vfm::dist {

class DeviceCarrier {
 public:
  virtual ~DeviceCarrier() = default;
  /// `place` is for error messages: "all_gather of F32 elements [2 2] (3 of 'tp')". `ended` is
  /// called within 0.1 s after the GPU has done it, from any thread.
  virtual std::unique_ptr<Pending> start(const Call& call, const std::string& place,
                                         std::function<void()> ended) = 0;
};

/// The limit set by World::section(). Any thread may read what is atomic.
struct Section {
  std::atomic<double> limit{0};  ///< seconds; 0: no limit
  std::atomic<bool> learnt{false};
  SectionTimes times = {};
  double least = 10;  ///< of a limit that is learnt, in seconds; 0: none is
  /// If set, ends the run with this message after a rank is lost; does not return. Set before
  /// carriers are made.
  std::function<void(const std::string&)> lost = {};
};

/// Returns why NCCL cannot be used in this build or on this machine; empty if it can. Opens NCCL.
std::string why_no_nccl();

/// A collective of `group`, which has two or more ranks and must be able to exchange host tensors.
/// `where` is for error messages: "rank 3 on host b". With `ordered`, sums of floats add in the
/// order of the ranks, which needs staging memory on the GPU as in dist/message_group.h. Without
/// `ordered`, NCCL chooses the order, the same on all ranks.
std::unique_ptr<DeviceCarrier> nccl_carrier(Group& group, const std::string& where, bool ordered,
                                            std::shared_ptr<const Section> section);

}  // namespace vfm::dist

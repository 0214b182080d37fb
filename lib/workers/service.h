// Does the work of a worker process, the other end of workers/worker.h.
//
// A program that has workers names its services in Tool::serve_card() (cli/runner.h):
//
//   int serve_card(int channel) override {
//     return vfm::workers::serve_card(channel, {{"pictures", vfm::workers::open_pictures}});
//   }
//
// Thread-safety: one thread makes and calls a service.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "workers/parcel.h"

namespace vfm::workers {

class Service {
 public:
  virtual ~Service() = default;
  /// Answers a request. The request's tensors are views, valid until the next request; the answer's
  /// tensors may be views of them. The asking thread gets an Error, and the worker continues; an
  /// Error of kind device (GpuError) ends the use of this worker. If the service calls end_run()
  /// (base/run_end.h) and throws Stopped, the program's run ends with the same message.
  virtual Parcel answer(const Parcel& request) = 0;
};

/// Makes the service from WorkerPlan::open, on this process's card: `device` is cuda or cpu. Throws
/// Error.
using OpenService = std::function<std::unique_ptr<Service>(const Parcel& open, Device device)>;
using Services = std::map<std::string, OpenService>;

/// argv[1] of a program that is a worker; argv[2] is the number of a descriptor.
constexpr const char* kServeCard = "--serve-card";

/// Opens the requested service and answers requests. When the other end of `channel` closes, the
/// process ends at once, even while it computes. Returns an exit status.
int serve_card(int channel, const Services& services);

}  // namespace vfm::workers

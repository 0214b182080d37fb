// The other end of workers/worker.h: the work of a worker process.
//
// A program that has workers names its services in Tool::serve_card() (cli/runner.h):
//
//   int serve_card(int channel) override {
//     return vfm::workers::serve_card(channel, {{"pictures", vfm::workers::open_pictures}});
//   }
//
// Thread-safety: a service is made and asked by one thread.
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
  /// Answers a request. The request's tensors are views, valid until it returns; the answer's may
  /// be views of those. An Error goes to the asking thread, and the next request may come; an Error
  /// of kind device (GpuError) ends the use of this worker. Stopped, after end_run()
  /// (base/run_end.h), ends the program's run for the same reason.
  virtual Parcel answer(const Parcel& request) = 0;
};

/// Opens it, as WorkerPlan::open says, on this process's card: `device` is cuda, or cpu. Throws
/// Error.
using OpenService = std::function<std::unique_ptr<Service>(const Parcel& open, Device device)>;
using Services = std::map<std::string, OpenService>;

/// The argument by which a program is a worker: argv[1], followed by the number of a descriptor.
constexpr const char* kServeCard = "--serve-card";

/// Opens the requested service and serves until the other end of `channel` closes: then the process
/// ends at once, even while it computes. Returns an exit status.
int serve_card(int channel, const Services& services);

}  // namespace vfm::workers

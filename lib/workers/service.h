// The work of a worker process, which workers/worker.h starts.
//
// A program lists the services of its workers in Tool::serve_gpu() (cli/runner.h):
//
//   int serve_gpu(int channel) override {
//     return vfm::workers::serve_gpu(channel, {{"pictures", vfm::workers::open_pictures}});
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
  /// The request's tensors are views, valid until the next request. The answer's tensors may be
  /// views of the request's tensors. If answer() throws an Error, the asking thread gets the error,
  /// and the worker continues. After an Error of kind device (GpuError) the worker is not used
  /// again. If the service calls end_run() (base/run_end.h) and throws Stopped, the program's run
  /// ends with the message of end_run().
  virtual Parcel answer(const Parcel& request) = 0;
};

/// Makes a service from a parcel, the member `open` of WorkerPlan. `device` is cuda or cpu. Throws
/// Error.
using OpenService = std::function<std::unique_ptr<Service>(const Parcel& open, Device device)>;
using Services = std::map<std::string, OpenService>;

/// The argument argv[1] of a worker process. argv[2] is the descriptor `channel` of serve_gpu().
constexpr const char* kServeGpu = "--serve-gpu";

/// Opens the requested service and answers requests. When the program closes its end of `channel`,
/// the worker process ends at once, even during a computation. Returns an exit status.
int serve_gpu(int channel, const Services& services);

}  // namespace vfm::workers

// A worker is a process for one GPU, or for the processor. The program starts itself again as the
// worker and sends requests. If a GPU fails, only its worker ends.
//
// A worker runs one service (workers/service.h), which answers one request after the other. The
// worker sees only its GPU (CUDA_VISIBLE_DEVICES). A worker on the processor sees no GPU. A worker
// ends when the program ends, for any reason, and ignores signals of the terminal. The program's
// log receives the worker's log lines and standard error, with the name of the GPU.
//
// Requests and answers are parcels (workers/parcel.h). Thread-safety: any thread; requests wait for
// each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "share/gpu_board.h"
#include "workers/parcel.h"

namespace vfm::workers {

struct WorkerPlan {
  std::string service;
  Parcel open = {};     ///< Parcel that opens the service.
  /// Largest size of a request or an answer, in bytes. A larger parcel is an Error{limit}.
  std::uint64_t most_bytes = std::uint64_t{8} << 30;
  bool sees_all = false;  ///< If true, the worker sees all GPUs of this program.
  int life = -1;          ///< Descriptor of GpuBoard::life() for the worker, or -1.
};

/// The error of a worker that has ended or sent an invalid message. The request may be sent to
/// another worker.
class WorkerLost : public Error {
 public:
  explicit WorkerLost(const std::string& message) : Error(message, ErrorKind::device) {}
};

class Worker {
 public:
  /// Starts a worker and waits until its service is open. Throws the service's Error, WorkerLost or
  /// Stopped. After an exception the worker has ended.
  Worker(const share::SharedGpu& gpu, const WorkerPlan& plan);
  /// Ends the worker, even during a computation, and waits until the worker has ended. Then the
  /// GPU's memory is free.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Returns the answer. Throws the service's Error with its kind, cause and text. A GpuError
  /// becomes an Error of kind device. Throws WorkerLost and Stopped. After Stopped the worker has
  /// ended.
  Parcel ask(const Parcel& request);
  const std::string& name() const { return name_; }

 private:
  struct State;
  Parcel exchange(const Parcel& request, bool first);
  Parcel hear();
  [[noreturn]] void tell_death();
  [[noreturn]] void lose(const std::string& why);
  void end() noexcept;

  std::string name_;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::workers

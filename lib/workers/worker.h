// A worker is this same program, started again as a process for one card (a GPU, or the processor).
// Only the worker uses the card: the program that started it sends requests. So one program works
// with several GPUs, though a process drives only one (tensor/device.h), and a failing GPU costs a
// worker, not the run.
//
// A worker runs one service (workers/service.h), which opens when the worker starts and then
// answers one request after the other. It sees only its GPU (CUDA_VISIBLE_DEVICES); on "cpu" it
// sees no GPU. It ends when the program ends, for whatever reason, and ignores signals of the
// terminal. Its log lines, and all lines that its libraries write to standard error, go to the
// program's log, with the card's name.
//
// Requests and answers are parcels (workers/parcel.h) in memory that both processes map. An answer
// is checked and copied before it is used. Thread-safety: any thread; requests wait for each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "share/card_board.h"
#include "workers/parcel.h"

namespace vfm::workers {

/// The values with which a worker is started.
struct WorkerPlan {
  std::string service;  ///< name of the worker's service
  Parcel open = {};     ///< the parcel that opens the service
  /// Most bytes of a request or an answer; a larger one is an Error{limit}.
  std::uint64_t most_bytes = std::uint64_t{8} << 30;
  bool sees_all = false;  ///< the worker sees all GPUs of this program, not only its card
  int life = -1;          ///< CardBoard::life(), which the worker keeps until it ends; -1: none
};

/// Thrown if the worker has ended, or sent an invalid message; another worker may get its request.
class WorkerLost : public Error {
 public:
  explicit WorkerLost(const std::string& message) : Error(message, ErrorKind::device) {}
};

class Worker {
 public:
  /// Starts a worker and waits until its service is open. Throws the Error of opening, WorkerLost
  /// and Stopped; in these cases the worker has ended.
  Worker(const share::Card& card, const WorkerPlan& plan);
  /// Ends the worker, even while it computes, and waits until it has ended. Then the card's memory
  /// is free.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Returns the answer. Throws the service's Error with the same kind (for GpuError: device),
  /// cause and text; WorkerLost; Stopped, after which the worker is lost, too.
  Parcel ask(const Parcel& request);
  /// Returns the worker's name for messages.
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

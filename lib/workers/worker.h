// A worker: this same program, started again, on one card. It alone has the card's CUDA context and
// a model on it; the program that started it sends requests, and never touches the card. So one
// program works with several GPUs, though a process drives only one (tensor/device.h), and a
// failing GPU costs a worker, not the run.
//
// It runs one service (workers/service.h), which opens when the worker starts and then answers one
// request after the other. Its GPU is the only one that it sees (CUDA_VISIBLE_DEVICES), on "cpu" it
// sees none. It ends when the program ends, however that does; signals of the terminal are the
// program's alone. Its log lines, and all lines that its libraries write to standard error, go
// through the program's log, with the card's name.
//
// Words and tensors travel as workers/parcel.h has them, in memory that both map; the answer is
// checked and copied before it is used. Thread-safety: any thread; requests wait for each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "share/card_board.h"
#include "workers/parcel.h"

namespace vfm::workers {

/// How a worker is started.
struct WorkerPlan {
  std::string service;  ///< name of its service
  Parcel open = {};     ///< what opens the service
  /// Most bytes of a request or an answer; more is an Error{limit}.
  std::uint64_t most_bytes = std::uint64_t{8} << 30;
  bool sees_all = false;  ///< all GPUs that this program sees, instead of its card's
  int life = -1;  ///< a descriptor that it holds until it has ended (CardBoard::life()); -1: none
};

/// The worker has ended, or sent an invalid message; its request may go to another worker.
class WorkerLost : public Error {
 public:
  explicit WorkerLost(const std::string& message) : Error(message, ErrorKind::device) {}
};

class Worker {
 public:
  /// Starts it and waits until its service is open. Throws the Error of opening, WorkerLost and
  /// Stopped; the worker has then ended.
  Worker(const share::Card& card, const WorkerPlan& plan);
  /// Ends it, whatever it does, and waits for its end: then the card's memory is free.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Throws the service's Error with the same kind (GpuError is one of kind device), cause and
  /// text; WorkerLost; Stopped, after which it is lost, too.
  Parcel ask(const Parcel& request);
  /// For messages.
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

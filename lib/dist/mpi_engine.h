// Inside lib/dist only: runs the operations of a rank's groups over MPI. A thread of its own moves
// their messages, whether the rank waits or computes (dist/errand_thread.h).
//
// An error that happens while the rank computes is thrown when the rank next waits for, polls or
// starts an operation. Thread-safety: the thread that made the engine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <memory>

#include "dist/errand_thread.h"
#include "dist/mpi_meeting.h"
#include "dist/wire.h"

namespace vfm::dist {

class MpiEngine final : public Engine {
 public:
  MpiEngine(Traffic& traffic, FlightRecorder& recorder, Meeting& meeting, ErrandThread& thread);

  void start(const std::shared_ptr<Running>& running) override;
  void finish(const Running& running) override;
  bool finished(const Running& running) override;
  /// Keeps the operation until it is done, since MPI may still read and write its memory. While an
  /// exception is in flight, all messages stop for good, since that memory may be freed next.
  void drop(const std::shared_ptr<Running>& running) override;
  /// Waits for all operations that are left, including those that were dropped.
  void finish_all();

 private:
  bool advance();
  void check() const;
  void wait(const Running& running);

  Meeting& meeting_;
  ErrandThread& thread_;
  // Used by the errand thread, or by this thread while the errand thread runs an errand for it.
  UnderWay under_way_;
  std::exception_ptr failure_;
  std::atomic<bool> stands_still_{false};
};

}  // namespace vfm::dist

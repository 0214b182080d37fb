// Inside lib/dist only: the operations of a rank's groups over MPI. A thread that does nothing else
// has them go on, whether the rank waits or computes (dist/errand_thread.h).
//
// What goes wrong while the rank computes is thrown when it asks for an operation, or starts one.
// Thread-safety: the thread that made it.
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
  MpiEngine(Traffic& traffic, Meeting& meeting, ErrandThread& thread);

  void start(const std::shared_ptr<Running>& running) override;
  void finish(const Running& running) override;
  bool finished(const Running& running) override;
  /// MPI may still read and write its memory: the operation stays until it is done. On the way out
  /// of an error, when that memory may be about to go, nothing moves any more.
  void drop(const std::shared_ptr<Running>& running) override;
  /// Waits for all that were dropped.
  void finish_all();

 private:
  bool advance();
  void check() const;
  void wait(const Running& running);

  Meeting& meeting_;
  ErrandThread& thread_;
  // Of the other thread, or of this one while that does an errand for it.
  UnderWay under_way_;
  std::exception_ptr failure_;
  std::atomic<bool> stands_still_{false};
};

}  // namespace vfm::dist

// SPDX-License-Identifier: Apache-2.0
#include "dist/mpi_engine.h"

#include <string>

#include "base/error.h"
#include "base/stopwatch.h"

namespace vfm::dist {

MpiEngine::MpiEngine(Traffic& traffic, FlightRecorder& recorder, Meeting& meeting,
                     ErrandThread& thread)
    : Engine(traffic, recorder), meeting_(meeting), thread_(thread) {
  thread_.call([this] {
    thread_.look_after([this] { return advance(); });
    // Ranks that have come to a collective have operations that others wait for, too.
    meeting_.meanwhile([this] { advance(); });
  });
}

/// Has all go on; tells whether any is left. From the other thread.
bool MpiEngine::advance() {
  if (stands_still_) return false;
  try {
    under_way_.advance();
  } catch (...) {
    failure_ = std::current_exception();
    stands_still_ = true;
  }
  return !under_way_.empty() && !stands_still_;
}

/// Throws what went wrong. From the other thread.
void MpiEngine::check() const {
  if (failure_) std::rethrow_exception(failure_);
}

void MpiEngine::start(const std::shared_ptr<Running>& running) {
  check_thread();
  if (stands_still_) thread_.call([this] { check(); });
  thread_.post([this, running] {
    if (stands_still_) return;
    try {
      under_way_.start(running);
    } catch (...) {
      failure_ = std::current_exception();
      stands_still_ = true;
    }
  });
}

bool MpiEngine::finished(const Running& running) {
  check_thread();
  if (!running.finished() && stands_still_) thread_.call([this] { check(); });
  return running.finished();
}

/// From the other thread.
void MpiEngine::wait(const Running& running) {
  meeting_.until(
      running.what().place,
      [&] {
        check();
        return running.finished();
      },
      [&] { return running.awaited(); });
}

void MpiEngine::finish(const Running& running) {
  check_thread();
  if (running.finished()) return;
  const Stopwatch watch;
  thread_.call([&] { wait(running); });
  traffic().waited(running.what().axis, watch.seconds());
}

void MpiEngine::drop(const std::shared_ptr<Running>& running) {
  if (std::uncaught_exceptions() == 0) return;
  thread_.call([&] {
    if (!stands_still_.exchange(true))
      failure_ =
          std::make_exception_ptr(Error("an error left " + running->what().place + " unfinished"));
  });
}

void MpiEngine::finish_all() {
  thread_.call([this] {
    while (!under_way_.empty()) {
      const std::shared_ptr<Running> first = under_way_.first();
      wait(*first);
    }
  });
}

}  // namespace vfm::dist

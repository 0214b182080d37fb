// SPDX-License-Identifier: Apache-2.0
#include "share/waiting_line.h"

namespace vfm::share {

WaitingLine::Place::Place(WaitingLine& line) : line_(line) {
  const std::lock_guard lock(line.mutex_);
  at_ = line.places_.insert(line.places_.end(), this);
}

WaitingLine::Place::~Place() {
  const std::lock_guard lock(line_.mutex_);
  const bool first = line_.places_.front() == this;
  line_.places_.erase(at_);
  // Under the lock: the other cannot leave, and its condition with it, before it is called.
  if (first && !line_.places_.empty()) line_.places_.front()->first_.notify_one();
}

bool WaitingLine::Place::await_first(std::chrono::nanoseconds most) {
  std::unique_lock lock(line_.mutex_);
  return first_.wait_for(lock, most, [this] { return line_.places_.front() == this; });
}

}  // namespace vfm::share

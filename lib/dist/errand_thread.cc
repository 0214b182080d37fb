// SPDX-License-Identifier: Apache-2.0
#include "dist/errand_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace vfm::dist {
namespace {

constexpr double kAwake = 5e-5;  // without a break after an errand
constexpr double kMoved = 2e-5;  // a look that takes as long moved something
constexpr double kShortSleep = 1e-4, kLongSleep = 1e-3;  // between looks

double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

ErrandThread::ErrandThread() : thread_([this] { run(); }) {}

ErrandThread::~ErrandThread() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void ErrandThread::post(Errand errand) {
  {
    const std::lock_guard lock(mutex_);
    errands_.push_back(std::move(errand));
  }
  wake_.notify_one();
}

void ErrandThread::call(const Errand& errand) {
  bool done = false;
  std::exception_ptr thrown;
  post([&] {
    try {
      errand();
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    done = true;
    done_.notify_one();
  });
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return done; });
  if (thrown) std::rethrow_exception(thrown);
}

/// Until there may be something to do; true: an errand, or the end.
bool ErrandThread::sleep(std::unique_lock<std::mutex>& lock) {
  const auto given = [this] { return !errands_.empty() || end_; };
  if (given()) return true;
  if (!busy_) {
    wake_.wait(lock, given);
    return true;
  }
  if (clock_seconds() < awake_until_) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    return given();
  }
  const bool called = wake_.wait_for(lock, std::chrono::duration<double>(pause_), given);
  pause_ = std::min(pause_ * 1.25, kLongSleep);
  return called;
}

void ErrandThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    bool stirred = false;
    if (sleep(lock)) {
      if (errands_.empty()) return;
      const Errand errand = std::move(errands_.front());
      errands_.pop_front();
      lock.unlock();
      errand();
      stirred = true;
    } else {
      lock.unlock();
    }
    const double begin = clock_seconds();
    busy_ = look_ && look_();
    const double end = clock_seconds();
    if (stirred || end - begin > kMoved) {
      awake_until_ = end + kAwake;
      pause_ = kShortSleep;
    }
    lock.lock();
  }
}

}  // namespace vfm::dist

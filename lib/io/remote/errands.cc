// SPDX-License-Identifier: Apache-2.0
#include "io/remote/errands.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "io/at_once.h"

namespace vfm::io {
namespace {
constexpr std::size_t kMostErrandThreads = 64;
}

struct Errand::State {
  enum class Stage { waiting, running, ended };

  std::function<void()> act;
  std::mutex mutex;
  std::condition_variable changed;
  Stage stage = Stage::waiting;
  std::exception_ptr error;

  /// Returns whether this thread is the one to run it.
  bool claim() {
    const std::lock_guard lock(mutex);
    if (stage != Stage::waiting) return false;
    stage = Stage::running;
    return true;
  }
  void run() {
    try {
      act();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    act = nullptr;
    stage = Stage::ended;
    changed.notify_all();
  }
  void await() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stage == Stage::ended; });
  }
};

/// Threads are started when errands wait, and stay.
class ErrandThreads {
 public:
  static ErrandThreads& get() {
    static auto& threads = *new ErrandThreads;  // the threads use it until the process ends
    return threads;
  }
  void add(std::shared_ptr<Errand> errand) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(errand));
    if (idle_ < waiting_.size() && threads_ < kMostErrandThreads) {
      std::thread([this] { work(); }).detach();
      ++threads_;
    }
    changed_.notify_one();
  }

 private:
  void work() {
    for (;;) {
      std::shared_ptr<Errand> errand;
      {
        std::unique_lock lock(mutex_);
        ++idle_;
        changed_.wait(lock, [&] { return !waiting_.empty(); });
        --idle_;
        errand = std::move(waiting_.front());
        waiting_.pop_front();
      }
      if (errand->state_->claim()) errand->state_->run();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Errand>> waiting_;
  std::size_t threads_ = 0, idle_ = 0;
};

Errand::Errand() : state_(std::make_unique<State>()) {}
Errand::~Errand() = default;

std::shared_ptr<Errand> Errand::start(std::function<void()> act) {
  std::shared_ptr<Errand> errand(new Errand);
  errand->state_->act = std::move(act);
  ErrandThreads::get().add(errand);
  return errand;
}

void Errand::run_here() {
  if (state_->claim()) state_->run();
}

void Errand::finish() {
  run_here();
  state_->await();
  if (state_->error) std::rethrow_exception(state_->error);
}

void Errand::drop() noexcept {
  if (state_->claim())
    state_->act = [] {};
  else
    return state_->await();
  state_->run();
}

void for_each_at_once(std::size_t count, std::size_t threads,
                      const std::function<void(std::size_t)>& act) {
  std::atomic<std::size_t> next{0};
  const auto some = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++)
        act(i);
    } catch (...) {
      next = count;
      throw;
    }
  };
  std::vector<std::shared_ptr<Errand>> errands;
  for (std::size_t i = 1; i < std::min(count, threads); ++i)
    errands.push_back(Errand::start(some));
  std::exception_ptr error;
  try {
    some();
  } catch (...) {
    error = std::current_exception();
  }
  for (const auto& errand : errands) {
    if (error) {
      errand->drop();
      continue;
    }
    try {
      errand->finish();
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace vfm::io

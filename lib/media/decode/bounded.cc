// SPDX-License-Identifier: Apache-2.0
#include "media/decode/bounded.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/input_limits.h"
#include "base/left_behind.h"
#include "base/stop.h"
#include "base/thread_stop.h"
#include "base/units.h"

namespace vfm::media {
namespace {

struct Worker {
  std::mutex mutex;  // Guards all but the atomic members.
  std::condition_variable changed;
  std::function<void()> work;  // Empty if there is none.
  bool done = false;
  std::exception_ptr error;
  std::atomic<std::uint64_t> beats{0};
  std::atomic<bool> left{false};
};

/// Threads without work. Never destroyed, because these threads wait here when the program ends.
struct Idle {
  std::mutex mutex;
  std::vector<std::shared_ptr<Worker>> workers;
};
Idle& idle() {
  static Idle* const all = new Idle;
  return *all;
}

thread_local std::atomic<std::uint64_t>* t_beats = nullptr;
thread_local const std::atomic<bool>* t_left = nullptr;
thread_local const Spending* t_spending = nullptr;

double thread_seconds() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void give_back(std::shared_ptr<Worker> worker) {
  const std::lock_guard lock(idle().mutex);
  idle().workers.push_back(std::move(worker));
}

void serve(const std::shared_ptr<Worker>& worker) {
  t_beats = &worker->beats;
  t_left = &worker->left;
  stop_thread_by(&worker->left);  // Ends waits for the network.
  for (;;) {
    std::unique_lock lock(worker->mutex);
    worker->changed.wait(lock, [&] { return worker->work != nullptr; });
    std::function<void()> work = std::move(worker->work);
    worker->work = nullptr;
    lock.unlock();
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    work = nullptr;  // Destroys data of the work before the caller goes on.
    lock.lock();
    worker->done = true;
    worker->error = std::exchange(error, nullptr);
    if (!worker->left) {
      worker->changed.notify_all();
      continue;
    }
    worker->left = worker->done = false;
    worker->error = nullptr;
    lock.unlock();
    count_returned();
    give_back(worker);
  }
}

std::shared_ptr<Worker> take_worker() {
  {
    const std::lock_guard lock(idle().mutex);
    if (!idle().workers.empty()) {
      std::shared_ptr<Worker> worker = std::move(idle().workers.back());
      idle().workers.pop_back();
      return worker;
    }
  }
  auto worker = std::make_shared<Worker>();
  std::thread([worker] { serve(worker); }).detach();
  return worker;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool wait_for(Worker& worker, std::unique_lock<std::mutex>& lock, double limit) {
  constexpr double kHeeds = 2;  // Seconds in which a loop reacts to a stop.
  StillClock clock;
  const auto step = std::chrono::duration<double>(StillClock::kStep);
  while (!worker.changed.wait_for(lock, step, [&] { return worker.done; })) {
    const double still = clock.still(worker.beats);
    const bool stop = stop_requested();
    if (still <= (stop ? std::min(kHeeds, limit) : limit)) continue;
    worker.left = true;
    return false;
  }
  return true;
}

void run_apart(const std::string& name, std::function<void()> work, double limit) {
  std::shared_ptr<Worker> worker = take_worker();
  std::unique_lock lock(worker->mutex);
  worker->work = std::move(work);
  worker->changed.notify_all();
  if (!wait_for(*worker, lock, limit)) {
    lock.unlock();
    // Read before count_left_behind(), which may cause a stop. That this input hangs is reported
    // first.
    const bool stop = stop_requested();
    count_left_behind();
    if (stop) throw Stopped();
    fail_still(name);
  }
  worker->done = false;
  const std::exception_ptr error = std::exchange(worker->error, nullptr);
  lock.unlock();
  give_back(std::move(worker));
  if (error) std::rethrow_exception(error);
}

}  // namespace

void beat() noexcept {
  if (t_beats) t_beats->fetch_add(1, std::memory_order_relaxed);
}

void beat_into(std::atomic<std::uint64_t>* beats) noexcept {
  t_beats = beats;
}

bool is_left_behind() noexcept {
  return t_left && *t_left;
}

Spending::Spending(double& total) noexcept
    : total_(total), began_(thread_seconds()), before_(std::exchange(t_spending, this)) {}
Spending::~Spending() {
  total_ += seconds();
  t_spending = before_;
}
double Spending::seconds() const noexcept {
  return thread_seconds() - began_;
}
double spent_seconds() noexcept {
  return t_spending ? t_spending->total_ + t_spending->seconds() : 0;
}

double StillClock::still(std::uint64_t beats) {
  const double time = now();
  const double passed = last_ < 0 ? 0 : std::min(time - last_, 2 * kStep);
  seconds_ = beats != beats_ ? 0 : seconds_ + passed;
  all_ += passed;
  last_ = time;
  beats_ = beats;
  return seconds_;
}

void fail_still(const std::string& name) {
  fail_as(Cause::timeout, "cannot decode '{}': it got no further for {}; --timeout waits longer",
          name, format_seconds(input_limits().timeout));
}

void run_bounded(const std::string& name, std::function<void()> work) {
  const double limit = input_limits().timeout;
  try {
    // Work on such a thread already has a limit as a whole.
    if (limit <= 0 || t_left)
      work();
    else
      run_apart(name, std::move(work), limit);
  } catch (const std::bad_alloc&) {
    fail_as(Cause::memory, "cannot decode '{}': there is not enough memory", name);
  }
}

}  // namespace vfm::media

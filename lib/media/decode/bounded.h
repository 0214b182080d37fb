// Inside lib/media only: runs FFmpeg's work with a time limit.
//
// After a timeout, the work continues on its thread and keeps its memory, until the work returns or
// the program ends. base/left_behind.h limits the number of these threads.
//
// The limit applies to the time since the last call of beat(). Time in which the process is
// suspended (SIGSTOP) is not included.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace vfm::media {

/// Code that runs in run_bounded() or in a child process calls beat() to report progress, such as a
/// read packet or a decoded picture. In other code, beat() has no effect.
void beat() noexcept;
/// Sets the counter that beat() increments on this thread. Null means no counter.
void beat_into(std::atomic<std::uint64_t>* beats) noexcept;
/// Returns true if run_bounded() no longer waits for the work of this thread.
bool is_left_behind() noexcept;

/// In code that a Bounded runs, returns the processor time in seconds that this Bounded has used
/// since construction or restart(), without threads of the codec. Returns 0 in other code.
double spent_seconds() noexcept;
/// Measures this thread's processor time during the life of the object. The destructor adds the
/// seconds to `total`.
class Spending {
 public:
  explicit Spending(double& total) noexcept;
  ~Spending();
  Spending(const Spending&) = delete;
  Spending& operator=(const Spending&) = delete;

 private:
  friend double spent_seconds() noexcept;
  double seconds() const noexcept;
  double& total_;
  double began_;
  const Spending* before_;
};

/// A clock that measures for how long a number has not changed. Time in which the process is
/// suspended is not included.
class StillClock {
 public:
  /// Returns how many seconds ago the value of `beats` last changed between calls. Must be called
  /// at least every kStep seconds, because each call adds at most 2 * kStep.
  double still(std::uint64_t beats);
  /// Returns the seconds since the first call of still().
  double all() const { return all_; }
  static constexpr double kStep = 0.1;

 private:
  double seconds_ = 0, all_ = 0, last_ = -1;
  std::uint64_t beats_ = 0;
};

/// Runs `work` and rethrows its exceptions; std::bad_alloc becomes Error{Cause::memory}. With a
/// timeout (base/input_limits.h), `work` runs on another thread and must own all data that it uses.
/// If `work` makes no progress until the timeout, throws Error{Cause::timeout} with `name` in the
/// message. If `work` goes on after a stop (base/stop.h), run_bounded() throws Stopped. After a
/// timeout or such a stop, `work` continues on its thread.
void run_bounded(const std::string& name, std::function<void()> work);

/// Throws the timeout error of run_bounded().
[[noreturn]] void fail_still(const std::string& name);

/// Runs functions on an object of class State with run_bounded(). Thread-safety: one thread at a
/// time. After a timeout, the work keeps the State, and each later call throws the timeout error.
template <class State>
class Bounded {
 public:
  /// Creates the State with `make`. `make` and the functions given to call() must own all data that
  /// they use.
  template <class Make>
  Bounded(std::string name, Make make) : name_(std::move(name)) {
    const auto made = std::make_shared<std::shared_ptr<State>>();
    run([made, make] { *made = make(); });
    state_ = std::move(*made);
  }
  /// Runs use(state) with the time limit and returns its result.
  template <class Use>
  auto call(Use use) {
    using Result = std::invoke_result_t<Use, State&>;
    if (!state_) fail_still(name_);
    const auto result = std::make_shared<std::optional<Result>>();
    run([result, use = std::move(use), state = state_] { result->emplace(use(*state)); });
    return std::move(**result);
  }
  /// Resets spent_seconds() to 0.
  void restart() { spent_ = std::make_shared<double>(0); }
  /// Returns the State for reading between calls, or null after a timeout or stop.
  const State* get() const { return state_.get(); }
  /// Destroys the State. The time limit applies to this, too.
  void end() {
    if (!state_) return;
    run([last = std::make_shared<std::shared_ptr<State>>(std::move(state_))] { last->reset(); });
  }

 private:
  void run(std::function<void()> work) {
    try {
      run_bounded(name_, [work = std::move(work), spent = spent_] {
        const Spending spending(*spent);
        work();
      });
    } catch (const Error& error) {
      if (error.cause() == Cause::timeout) state_.reset();
      throw;
    } catch (const Stopped&) {
      state_.reset();
      throw;
    }
  }

  std::string name_;
  std::shared_ptr<double> spent_ = std::make_shared<double>(0);
  std::shared_ptr<State> state_;
};

}  // namespace vfm::media

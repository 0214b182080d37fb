// Inside lib/media only: runs work with a time limit, since FFmpeg may never end on a hostile file.
//
// A thread cannot be killed without harm to the process. Stuck work is therefore left behind: its
// thread keeps its memory, and a processor if busy, until the work returns or the program ends. The
// number of threads left behind is limited (base/left_behind.h). Decoding in separate processes
// (isolated.h) leaves none behind.
//
// Only time without progress counts, so a long film may take long. Work reports progress by beat().
// Time for which the whole process is stopped does not count.
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

/// Reports progress (a packet or new byte was read, or a picture was decoded) in work of
/// run_bounded() or of a child. In other code beat() does nothing.
void beat() noexcept;
/// From now on beat() on this thread increments `beats`, if not null.
void beat_into(std::atomic<std::uint64_t>* beats) noexcept;
/// Returns true if the caller no longer waits for this thread's work, so that its result does not
/// matter.
bool is_left_behind() noexcept;

/// Returns the processor seconds that a Bounded's work has used since construction or restart(),
/// without the codec's own threads. Outside this work, returns 0.
double spent_seconds() noexcept;
/// Adds the processor seconds that this thread uses during the object's life to `total`.
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
  const Spending* before_;  // the enclosing scope's
};

/// Measures for how long a count has not changed, without time in which this process is stopped.
class StillClock {
 public:
  /// Returns the seconds since `beats` changed. Call still() at least every kStep seconds: of the
  /// time between two calls, at most two steps are counted.
  double still(std::uint64_t beats);
  /// Returns the seconds since the first call of still(), counted in the same way.
  double all() const { return all_; }
  static constexpr double kStep = 0.1;

 private:
  double seconds_ = 0, all_ = 0, last_ = -1;
  std::uint64_t beats_ = 0;
};

/// Runs `work` and throws its exceptions, as Error{Cause::memory} for std::bad_alloc. With a
/// timeout (base/input_limits.h) `work` runs on another thread, and must own all that it uses. If
/// `work` makes no progress for that time, run_bounded() throws Error{Cause::timeout}, with `name`
/// in the message, and leaves `work` behind. If `work` does not react to a stop (base/stop.h), it
/// throws Stopped and leaves `work` behind.
void run_bounded(const std::string& name, std::function<void()> work);

/// Throws the timeout error of run_bounded().
[[noreturn]] void fail_still(const std::string& name);

/// A State that is used only in bounded work, by one thread at a time. Work that is left behind
/// keeps the State; each later call throws the timeout error.
template <class State>
class Bounded {
 public:
  /// `make` creates the State. `make` and each `use` must own all that they use.
  template <class Make>
  Bounded(std::string name, Make make) : name_(std::move(name)) {
    const auto made = std::make_shared<std::shared_ptr<State>>();
    run([made, make] { *made = make(); });
    state_ = std::move(*made);
  }
  /// Returns what use(state) returns.
  template <class Use>
  auto call(Use use) {
    using Result = std::invoke_result_t<Use, State&>;
    if (!state_) fail_still(name_);
    const auto result = std::make_shared<std::optional<Result>>();
    run([result, use = std::move(use), state = state_] { result->emplace(use(*state)); });
    return std::move(**result);
  }
  /// Restarts spent_seconds() at 0.
  void restart() { spent_ = std::make_shared<double>(0); }
  /// Returns the State, for reading between calls, or null if it was left behind.
  const State* get() const { return state_.get(); }
  /// Destroys the State, in bounded work.
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

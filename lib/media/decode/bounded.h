// Inside lib/media only: work that may never end, since FFmpeg may never end on a hostile file. It
// runs on a thread that can be left behind.
//
// A thread cannot be killed without harm to the process. So a stuck thread keeps its memory, and
// its processor if busy, until it returns or the program ends; the waiting thread goes on. The
// number of such threads is limited (base/left_behind.h). If that is too much, decode in separate
// processes (isolated.h).
//
// Time counts only without progress, so a long film may take long. Work reports progress by beat().
// Time in which the whole process is stopped does not count.
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

/// Reports progress in work of run_bounded() or of a child: a packet was read, a picture decoded, a
/// new byte read. Elsewhere does nothing.
void beat() noexcept;
/// From now on beat() on this thread counts in `beats`; null: nowhere.
void beat_into(std::atomic<std::uint64_t>* beats) noexcept;
/// Whether nobody waits for this thread's work any more: it may end in any way.
bool is_left_behind() noexcept;

/// Processor seconds that this thread's State (Bounded) has used since it was made, or since
/// restart(); elsewhere 0. Threads of its codec are not counted.
double spent_seconds() noexcept;
/// A scope of such work: adds this thread's processor seconds to `total`.
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
  const Spending* before_;  // of the work that this one is a part of
};

/// Measures how long a count has not changed, in this process's running time.
class StillClock {
 public:
  /// Seconds since `beats` changed. Called at least every kStep; a longer time between two calls
  /// counts as two steps.
  double still(std::uint64_t beats);
  /// Seconds since the first call of still(), counted likewise.
  double all() const { return all_; }
  static constexpr double kStep = 0.1;

 private:
  double seconds_ = 0, all_ = 0, last_ = -1;
  std::uint64_t beats_ = 0;
};

/// Does `work` and throws what it throws; for std::bad_alloc Error{Cause::memory}. With a timeout
/// (base/input_limits.h) `work` runs on another thread, from a small pool, and must own all that it
/// uses: without a beat for that long, throws Error{Cause::timeout} that names `name`, and `work`
/// goes on alone. The same happens, with Stopped, if it does not heed a stop.
void run_bounded(const std::string& name, std::function<void()> work);

/// Throws the timeout error of run_bounded().
[[noreturn]] void fail_still(const std::string& name);

/// A State that is used only in bounded work, by one thread at a time. Work that is left behind
/// keeps the State, and each further call throws as the first.
template <class State>
class Bounded {
 public:
  /// `make` must own all that it uses, and so must each `use`.
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
  /// Null if it was left behind. It may be read between calls.
  const State* get() const { return state_.get(); }
  /// Destroys it as bounded work.
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

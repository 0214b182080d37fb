// Inside lib/media only: work that may never end, because what FFmpeg does with a hostile file may
// never end. It is done on a thread that can be left behind.
//
// A thread cannot be killed without harm to the process. So one that gets no further keeps its
// memory, and its processor if it is busy, until it comes back or the program ends; the thread that
// waited for it goes on. A program carries but so many of them (base/left_behind.h). Where that is
// too much, decoding belongs in a process of its own (isolated.h).
//
// Time counts only while nothing happens: a long film that is read and decoded takes what it takes.
// What happens is said by beat(). Time in which this whole process stands still does not count.
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

/// Says, in work of run_bounded() or of a child's, that it has come further: a packet was read, a
/// picture decoded, a byte read that was never read before. Elsewhere nothing.
void beat() noexcept;
/// From now on beat() on this thread counts here; null: nowhere.
void beat_into(std::atomic<std::uint64_t>* beats) noexcept;
/// Whether nobody waits any more for the work on this thread: it may end in any way.
bool is_left_behind() noexcept;

/// Seconds of a processor that the State whose work this thread does (Bounded) has taken since it
/// was made, or restart(); elsewhere 0. Threads of its codec are not counted.
double spent_seconds() noexcept;
/// While there is one: this thread does such work, and adds what it takes to `total`.
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

/// Tells how long a count has stayed as it is, in the time that this process ran.
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
/// (base/input_limits.h) it is done on another thread, one of a few that are kept for that, and
/// must own all that it uses: when it gives no beat for that long, Error{Cause::timeout} is thrown,
/// which names `name`, and it goes on alone. The same happens, with Stopped, when a stop is asked
/// for and it does not heed that.
void run_bounded(const std::string& name, std::function<void()> work);

/// What the error of run_bounded() says.
[[noreturn]] void fail_still(const std::string& name);

/// A State that is used in bounded work alone, by one thread at a time. When such work was left
/// behind, the State is its own, and each further call throws as the first.
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
  /// What use(state) returns.
  template <class Use>
  auto call(Use use) {
    using Result = std::invoke_result_t<Use, State&>;
    if (!state_) fail_still(name_);
    const auto result = std::make_shared<std::optional<Result>>();
    run([result, use = std::move(use), state = state_] { result->emplace(use(*state)); });
    return std::move(**result);
  }
  /// From now on spent_seconds() counts anew.
  void restart() { spent_ = std::make_shared<double>(0); }
  /// Null where it was left behind. Between calls it may be looked at.
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

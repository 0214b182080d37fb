// Worker slots limit how many items a program works on at the same time.
//
// The slots come from -j N, from a GNU make jobserver, or from a file that programs share
// (share/pipe_board.h). With a jobserver, a program owns one slot, and borrows the other slots from
// make as tokens. A thread holds a slot only while it works on an item.
//
// A thread has no slot while it waits for a device, such as a GPU (Away). A thread with a GPU may
// wait for a slot, but a thread with a slot never waits for a GPU, so there is no deadlock.
// Protocol: GNU make manual, "POSIX Jobserver Interaction". Thread-safety: acquire() and release()
// from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "share/ordered_flow.h"
#include "share/pipe_board.h"
#include "share/slot_rule.h"

namespace vfm::share {

class Slots {
 public:
  /// Makes `threads` slots, at least 1, without a jobserver.
  explicit Slots(int threads);
  /// Uses slots of the jobserver that `makeflags` (the value of MAKEFLAGS) names, at most `threads`
  /// at a time. If `makeflags` names no jobserver, or if the descriptors are not a pipe (a recipe
  /// line without '+'), makes `threads` slots.
  Slots(int threads, const std::string& makeflags);
  /// Uses slots of a board, at most `threads` at a time. If the board has no slots, makes slots
  /// as Slots(threads, makeflags) does, and reports to the board how these slots are used.
  Slots(int threads, const std::string& makeflags, std::shared_ptr<PipeBoard> board);
  /// Lends slots of the object `of` to at most `threads` parts of one item at a time, while the
  /// item's thread is Away. `of` must outlive this object.
  Slots(Slots& of, int threads);
  ~Slots();
  /// Returns `makeflags` if it names a fifo or file descriptors of a pipe; otherwise "". Call it
  /// before the program opens any file: a later pipe of the program could get the numbers of make's
  /// descriptors.
  static std::string given_jobserver(const std::string& makeflags);
  static bool finds_jobserver(const std::string& makeflags);

  int threads() const;
  bool has_jobserver() const;
  /// Returns how many items may be under way at a time: threads(), plus the sum of all add_away().
  /// Call add_away() before the first item, with the number of items whose threads may be Away.
  int items_at_once() const;
  void add_away(int items);
  /// Sets the counters of this program's results (share/ordered_flow.h). Null means no counters.
  /// Call it before the first item, and not for slots of an item's parts.
  void set_flow(std::shared_ptr<OrderedFlow> flow);
  OrderedFlow* flow() const;
  using Use = SlotUse;
  /// Waits for a slot. With Use::help, waiting items get slots before this thread. Returns false,
  /// without a slot, if `over` becomes true first. Throws Stopped after a stop request.
  bool acquire(Use use = Use::item, const std::atomic<bool>* over = nullptr);
  /// Returns whether an item waits for a slot. If so, helping threads should release their slots.
  bool wanted() const;
  void release() noexcept;

  class Change;
  class Hold {
   public:
    explicit Hold(Slots& slots, Use use = Use::item, const std::atomic<bool>* over = nullptr);
    ~Hold();
    explicit operator bool() const { return has_; }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    friend class Change;
    void set(bool has) noexcept;
    Slots& slots_;
    const Use use_;
    Hold* const outer_;  // enclosing Hold of the same thread
    bool has_;
  };
  /// Changes for a scope whether this thread has the slot of its innermost Hold. Without a Hold,
  /// does nothing. If the thread cannot get a slot (the program stops, or make's jobserver has
  /// gone), it continues without a slot. The next acquire() reports the failure.
  class Change {
   public:
    explicit Change(bool has);
    ~Change();
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    /// If other programs took slots while this program was stopped (PipeBoard::owes()), gives one
    /// slot up and waits for another slot. Called at safe points (base/safe_point.h).
    static void settle() noexcept;

   private:
    Hold* const hold_;
    const bool had_;
  };
  /// Gives this thread's slot to other threads for a scope in which the thread waits and computes
  /// nothing.
  struct Away : Change {
    Away() : Change(false) {}
  };
  /// Takes a slot again for a scope within an Away scope. In the inner scope, the thread computes,
  /// or waits for a process that computes.
  struct Back : Change {
    Back() : Change(true) {}
  };
  /// Reports for a scope that this program waits for input, or for its reader. Only one thread at a
  /// time may report the same kind of wait.
  class Waiting {
   public:
    Waiting(Slots& slots, PipeBoard::Wait wait);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    PipeBoard* board_;
    PipeBoard::Wait wait_;
  };

 private:
  bool acquire_plain(Use use, const std::atomic<bool>* over);
  void give_back_lost() noexcept;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::share

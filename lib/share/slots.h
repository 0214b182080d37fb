// Worker slots: how many items a program works on at once.
//
// Slots come from -j N, from a GNU make jobserver (a program owns one slot and borrows the others
// from make, token by token), or from a file that programs share (share/pipe_board.h). A thread
// holds a slot only while it works on an item. So programs joined by pipes under `make -j16` share
// the sixteen slots, and a program without input leaves its slots to other programs. A thread has
// no slot while it waits for a device, such as a GPU (Away). A thread with a GPU may wait for a
// slot, but a thread with a slot never waits for a GPU, so there is no deadlock. Items that wait to
// begin get slots before threads that help with items under way. Protocol: GNU make manual, "POSIX
// Jobserver Interaction". Thread-safety: acquire and release from any thread.
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
  /// Uses the slots of the jobserver that `makeflags` (the value of MAKEFLAGS) names, at most
  /// `threads` at once. If it names none, or its descriptors are no pipe (a recipe line without
  /// '+'), there are `threads` slots.
  Slots(int threads, const std::string& makeflags);
  /// Uses the slots of a board, at most `threads` at once. If the board has none, does what
  /// Slots(threads, makeflags) does, and the board shows those slots.
  Slots(int threads, const std::string& makeflags, std::shared_ptr<PipeBoard> board);
  /// Makes slots for up to `threads` parts of one item of `of` at once, while the item's thread is
  /// Away. `of` must outlive this.
  Slots(Slots& of, int threads);
  ~Slots();
  /// Returns `makeflags` if it names a fifo or descriptors of a pipe; otherwise "". Call it before
  /// the program opens any file, since a pipe of this program or of a GPU's driver could get the
  /// numbers of make's descriptors.
  static std::string given_jobserver(const std::string& makeflags);
  /// Returns whether `makeflags` names a jobserver that can be used.
  static bool finds_jobserver(const std::string& makeflags);

  int threads() const;
  bool has_jobserver() const;
  /// Returns how many items may be under way at once: threads(), plus the items that add_away()
  /// adds for threads that are Away. Call add_away() before the first item.
  int items_at_once() const;
  void add_away(int items);
  /// Sets the counter of this program's results (share/ordered_flow.h), or null for no counter.
  /// Call it before the first item, and not for slots for parts of items.
  void set_flow(std::shared_ptr<OrderedFlow> flow);
  OrderedFlow* flow() const;
  using Use = SlotUse;
  /// Waits for a slot; with Use::help, also until no item waits. Returns false, without a slot, if
  /// `over` becomes true first. Throws Stopped after a stop request.
  bool acquire(Use use = Use::item, const std::atomic<bool>* over = nullptr);
  /// Returns whether an item waits for a slot. If so, helping threads should give up their slots.
  bool wanted() const;
  void release() noexcept;

  class Change;
  /// Holds a slot for a scope.
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
    Hold* const outer_;  // of the same thread
    bool has_;
  };
  /// Changes for a scope whether this thread has the slot of its innermost Hold. Does nothing
  /// without a Hold. If the thread cannot get a slot, because of a stop or because make's jobserver
  /// has gone, it continues without a slot, and the next acquire() reports that.
  class Change {
   public:
    explicit Change(bool has);
    ~Change();
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    /// Is the action at safe points (base/safe_point.h). If other programs took slots while this
    /// program was stopped (PipeBoard::owes()), gives one slot up and waits for another.
    static void settle() noexcept;

   private:
    Hold* const hold_;
    const bool had_;
  };
  /// Gives this thread's slot to other threads for a scope in which it waits and computes nothing.
  struct Away : Change {
    Away() : Change(false) {}
  };
  /// Takes a slot again for a scope within Away, in which the thread computes, or waits for a
  /// process that computes.
  struct Back : Change {
    Back() : Change(true) {}
  };
  /// Says for a scope that this program waits for input, or for its reader. Only one thread at a
  /// time may use each kind of Wait.
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

// Worker slots: how many items a program works on at once.
//
// Slots come from -j N, or from a GNU make jobserver, where a program owns one slot for free and
// borrows the others from make, token by token, or from a file that programs share
// (base/pipe_board.h). A slot is held only while working on one item, so programs joined by pipes
// under `make -j16` share the sixteen slots, and a program without input leaves its slots to the
// others. A thread that waits for what another device does, a GPU, has none meanwhile (Away). It
// never waits for a card while it has a slot, but for a slot while it has a card, so nobody waits
// in a circle. Threads that would help with items under way come after items that are to be begun:
// more items at once need no helpers. Protocol: GNU make manual, "POSIX Jobserver Interaction".
// Thread-safety: acquire and release from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/ordered_flow.h"
#include "base/pipe_board.h"
#include "base/slot_rule.h"

namespace vfm {

class Slots {
 public:
  /// `threads` workers, no jobserver. threads >= 1.
  explicit Slots(int threads);
  /// The jobserver that `makeflags` (the value of MAKEFLAGS) names, at most `threads` at once;
  /// plain slots if it names none or what it names is no pipe (a recipe line without '+').
  Slots(int threads, const std::string& makeflags);
  /// The slots of a board, at most `threads` at once. Of a board without slots, those of the
  /// constructor before, which it shows.
  Slots(int threads, const std::string& makeflags, std::shared_ptr<PipeBoard> board);
  /// The slots of `of`, for the parts of one of its items, whose thread is Away meanwhile: up to
  /// `threads` parts at once. `of` must outlive it.
  Slots(Slots& of, int threads);
  ~Slots();
  /// `makeflags` where it names a fifo, or descriptors that are of a pipe; else "". To be asked
  /// before the program opens anything: what it opens may get the numbers of descriptors that it
  /// was not given, and a pipe of its own, or of a GPU's driver, would pass for make's.
  static std::string given_jobserver(const std::string& makeflags);
  /// Whether `makeflags` names a jobserver that can be used.
  static bool finds_jobserver(const std::string& makeflags);

  int threads() const;
  bool has_jobserver() const;
  /// Items that may be under way at once: as many as threads(), and so many more, of threads that
  /// are Away. add_away() before the first item.
  int items_at_once() const;
  void add_away(int items);
  /// What counts the results of this program (base/ordered_flow.h); null: nothing does. Set before
  /// the first item; not of slots for parts of items.
  void set_flow(std::shared_ptr<OrderedFlow> flow);
  OrderedFlow* flow() const;
  using Use = SlotUse;
  /// Waits for a slot; for help, until no item waits. False, and no slot, where `over` becomes true
  /// before there is one. Throws Stopped when a stop is asked for while waiting.
  bool acquire(Use use = Use::item, const std::atomic<bool>* over = nullptr);
  /// Whether an item waits for a slot: who helps gives up its own.
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
  /// Changes for a scope whether this thread has the slot of its innermost Hold. Without one it
  /// does nothing. Where a slot cannot be had, as there is a stop, or make's jobserver has gone,
  /// the thread goes on without: whoever acquires the next one is told.
  class Change {
   public:
    explicit Change(bool has);
    ~Change();
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    /// What threads do at safe points (base/safe_point.h): a slot that others took while this
    /// program was stopped (PipeBoard::owes()) is given up, and waited for again.
    static void settle() noexcept;

   private:
    Hold* const hold_;
    const bool had_;
  };
  /// This thread waits, and computes nothing: others have its slot.
  struct Away : Change {
    Away() : Change(false) {}
  };
  /// Within that: it computes after all, or waits for a process that does.
  struct Back : Change {
    Back() : Change(true) {}
  };
  /// Says for a scope that this program waits for input, or for whoever reads its output. One
  /// thread at a time for each.
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

}  // namespace vfm

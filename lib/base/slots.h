// Worker slots: how many items a program works on at once.
//
// Slots come from -j N, or from a GNU make jobserver, where a program owns one slot for free and
// borrows the others from make, token by token. A slot is held only while working on one item, so
// programs joined by pipes under `make -j16` share the sixteen slots, and a program without input
// leaves its slots to the others. Threads that would help with items under way come after items
// that are to be begun: more items at once need no helpers. Protocol: GNU make manual, "POSIX
// Jobserver Interaction". Thread-safety: acquire and release from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace vfm {

class Slots {
 public:
  /// `threads` workers, no jobserver. threads >= 1.
  explicit Slots(int threads);
  /// The jobserver that `makeflags` (the value of MAKEFLAGS) names, at most `threads` at once;
  /// plain slots if it names none or the pipe cannot be opened (a recipe line without '+').
  Slots(int threads, const std::string& makeflags);
  ~Slots();

  int threads() const;
  bool has_jobserver() const;
  /// What a slot is wanted for.
  enum class Use { item, help };
  /// Waits for a slot; for help, until no item waits. Throws Stopped when a stop is asked for while
  /// waiting.
  void acquire(Use use = Use::item);
  /// Whether an item waits for a slot: who helps gives up its own.
  bool wanted() const;
  void release() noexcept;

  /// Holds a slot for a scope.
  class Hold {
   public:
    explicit Hold(Slots& slots, Use use = Use::item) : slots_(slots) { slots_.acquire(use); }
    ~Hold() { slots_.release(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Slots& slots_;
  };

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm

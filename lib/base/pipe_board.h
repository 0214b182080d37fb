// What the programs of one pipe, on one machine, know of one another: the slots that they share,
// and the counts that one view of the pipe shows. It lies in a file that the user names (--share).
//
// A record of the file belongs to one program, which holds a lock on one byte of the file as long
// as it lives. The kernel frees that lock however the program ends; then the record counts no more,
// and neither do the slots in it: a program that is killed takes none with it. What others would
// wait for is looked at again every 50 ms, so they have its slots by then; what a living program
// gives back wakes the next one at once. Who is next: base/slot_rule.h.
//
// A slot is a word of the file with the number of the program that has it, taken and given by one
// atomic exchange: no lock, so no program can hold the others up, and a kill in between leaves
// nothing half done. Where a program is in the pipe follows from the pipes that it reads and
// writes. A program that is stopped (SIGSTOP) loses slots that it could have to the others after
// 50 ms, and those that it has when others have waited for two seconds, which say so. When it goes
// on, its threads take slots anew, in turn with the others, at their next safe point
// (base/safe_point.h), which is a frame away: as long, and no longer, more threads compute than
// there are slots. A program has the file's lock while it joins, for microseconds. Stopped then, it
// holds up those that join later, which say for whom they wait (base/pipe_lock.h).
//
// The file is 80 KiB, for up to 63 programs at a time, and stays when they have gone; the next ones
// use it again. A file with anything else in it is refused. Locks are those of open file
// descriptions (fcntl(2)), waits are futexes in the mapped file, so it must lie on a file system of
// this machine. It must not be removed or changed by others meanwhile.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/slot_rule.h"

namespace vfm {

/// What one program's record says. Seconds are of all its threads together for `slot` and `busy`,
/// of one thread at a time for `input` and `output`; waits that go on are in them.
struct StageState {
  std::string name, unit;  ///< of what it does: "vfm-clip", "videos"
  std::int64_t pid = 0;
  bool alive = false;            ///< false: it has ended
  bool stopped = false;          ///< by SIGSTOP or Ctrl-Z, as far as this program can see
  bool draws = false;            ///< it would show the view
  bool self = false;             ///< it is the caller's
  int held = 0;                  ///< slots
  int most = 0;                  ///< slots that it may have
  int waiting = 0;               ///< items read, but not begun
  std::int64_t input_bytes = 0;  ///< in the pipe that it reads
  std::uint64_t done = 0;        ///< units
  double input_seconds = 0;      ///< waited for input
  double output_seconds = 0;     ///< for whoever reads its output
  double slot_seconds = 0;       ///< for slots
  double busy_seconds = 0;       ///< with a slot
  double age = 0;                ///< since it joined; until it left
};

class PipeMap;
enum class Taken;

class PipeBoard {
 public:
  /// Who joins: the name that the view shows, and the descriptors of its input and output.
  struct Stage {
    std::string name;
    int input = 0, output = 1;
  };
  using Use = SlotUse;
  enum class Wait { input, output };

  /// Opens `path`, or makes it, and joins. `slots`: how many the programs share; 0: as many as
  /// those say that are there already, else `otherwise`; kNone: they share none, and the board only
  /// shows. Throws Error{usage} where `path` cannot be used, or living programs say otherwise;
  /// Stopped.
  PipeBoard(const std::string& path, int slots, int otherwise, const Stage& stage);
  /// Leaves.
  ~PipeBoard();
  PipeBoard(const PipeBoard&) = delete;
  PipeBoard& operator=(const PipeBoard&) = delete;

  static constexpr int kNone = -1;
  static constexpr int kMostSlots = 4096;
  /// kNone: it only shows.
  int slots() const;
  /// Slots that this program takes at most; one before it is said.
  void set_most(int most);

  /// Waits for a slot; for help, until no item of any program waits. False where `over` becomes
  /// true before there is one. Throws Stopped.
  bool acquire(Use use, const std::atomic<bool>* over = nullptr);
  void release() noexcept;
  /// Whether threads of this program hold slots that others took while it was stopped.
  bool owes() const;
  /// Whether an item of any program waits for a slot.
  bool wanted() const;
  /// Of a board without slots: that a thread waits for one elsewhere (+1, -1), has one, or has no
  /// more.
  void show_waiting(int by) noexcept;
  void show_held(int by) noexcept;
  /// This program has so many more of make's tokens. Called right after one is read and right
  /// before one is written, so a kill in between loses it.
  void show_tokens(int by) noexcept;
  /// Tokens that programs had which were killed: the caller gives them back. At most once a turn.
  int take_lost_tokens() noexcept;

  /// The view's counts of this program: from 0, in so many units.
  void start(std::string_view unit);
  void set_draws(bool draws) noexcept;
  void add_done(std::uint64_t done) noexcept;
  void begin_wait(Wait wait) noexcept;
  void end_wait(Wait wait) noexcept;
  /// All programs, in the order of the pipe; those that have ended, too, until their records are
  /// taken by others.
  std::vector<StageState> stages() const;

 private:
  Taken take(Use use, bool out_of_turn);
  void look_for_dead();
  std::vector<std::string> look_for_stopped();
  void add_held(int by);
  void add_waiting(Use use, int by);

  std::unique_ptr<PipeMap> map_;
  // Under the mutex.
  std::uint64_t looked_ = 0, turns_ = 0;  // when for programs that died, and how often
  std::vector<int> stopped_looks_;        // of each record: how often it was stopped in a row
};

}  // namespace vfm

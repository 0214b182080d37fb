// The board that the programs of one pipe share on one machine: their slots, and the counts that a
// view of the pipe shows. It lies in a file that the user names (VFM_SHARE).
//
// A record of the file belongs to one program, which holds a lock on one byte of the file as long
// as it lives. The kernel frees that lock however the program ends; then the record and its slots
// count no more, so a killed program takes no slots with it. Waiting programs look again every 50
// ms, and so have its slots by then; a slot that a living program gives back wakes the next one at
// once. share/slot_rule.h decides who is next.
//
// A slot is a word of the file with the number of the program that has it. One atomic exchange
// takes or gives it: there is no lock by which a program could hold up others, and a kill leaves
// nothing half done. The pipes that a program reads and writes give its place. A program that is
// stopped (SIGSTOP) loses its turn for slots after 50 ms, and its slots once others have waited for
// two seconds, which log it. When it goes on, its threads take slots again, in turn with the
// others, at their next safe point (base/safe_point.h), a frame away: only until then more threads
// compute than there are slots. A program holds the file's lock while it joins, for microseconds.
// If it is stopped then, later programs wait and log the program that they wait for
// (share/pipe_lock.h).
//
// The file is 80 KiB, for up to 63 programs at a time, and stays for later ones. A file with other
// content is refused. Locks are those of open file descriptions (fcntl(2)), waits are futexes in
// the mapped file, so it must lie on a file system of this machine. It must not be removed or
// changed by others meanwhile.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "share/slot_rule.h"

namespace vfm::share {

/// The state of one program. `slot` and `busy` seconds are summed over its threads; `input` and
/// `output` seconds are of one thread at a time. Waits that go on are included.
struct StageState {
  std::string name, unit;  ///< the program and its unit of work: "vfm-clip", "videos"
  std::int64_t pid = 0;
  bool alive = false;            ///< whether it still runs
  bool stopped = false;          ///< by SIGSTOP or Ctrl-Z, as far as this program can see
  bool draws = false;            ///< it wants to draw the view
  bool self = false;             ///< it is this program
  int held = 0;                  ///< slots
  int most = 0;                  ///< slots that it may have
  int waiting = 0;               ///< items read, but not begun
  std::int64_t input_bytes = 0;  ///< in the pipe that it reads
  std::uint64_t done = 0;        ///< units
  double input_seconds = 0;      ///< waited for input
  double output_seconds = 0;     ///< waited for its reader
  double slot_seconds = 0;       ///< waited for slots
  double busy_seconds = 0;       ///< with a slot
  double age = 0;                ///< since it joined; until it left
};

class PipeMap;
enum class Taken;

class PipeBoard {
 public:
  /// A program that joins: its name in the view, and the descriptors of its input and output.
  struct Stage {
    std::string name;
    int input = 0, output = 1;
  };
  using Use = SlotUse;
  enum class Wait { input, output };

  /// Opens or makes `path`, and joins. `slots`: how many the programs share; 0: as many as the
  /// programs there say, else `otherwise`; kNone: none, the board only shows. Throws Error{usage}
  /// where `path` cannot be used, or living programs give another number; Stopped.
  PipeBoard(const std::string& path, int slots, int otherwise, const Stage& stage);
  /// Leaves.
  ~PipeBoard();
  PipeBoard(const PipeBoard&) = delete;
  PipeBoard& operator=(const PipeBoard&) = delete;

  static constexpr int kNone = -1;
  static constexpr int kMostSlots = 4096;
  /// kNone: the board only shows.
  int slots() const;
  /// Sets the most slots that this program takes; one before this call.
  void set_most(int most);

  /// Waits for a slot; for help, until no item of any program waits. False where `over` becomes
  /// true before there is one. Throws Stopped.
  bool acquire(Use use, const std::atomic<bool>* over = nullptr);
  void release() noexcept;
  /// Whether threads of this program hold slots that others took while it was stopped.
  bool owes() const;
  /// True while an item of any program waits for a slot.
  bool wanted() const;
  /// For a board without slots: a thread begins (+1) or ends (-1) to wait for a slot elsewhere, or
  /// to have one.
  void show_waiting(int by) noexcept;
  void show_held(int by) noexcept;
  /// Changes this program's count of make's tokens. Called right after one is read and right before
  /// one is written, so a kill in between loses it.
  void show_tokens(int by) noexcept;
  /// Tokens of killed programs; the caller gives them back. Looks at most once a turn.
  int take_lost_tokens() noexcept;

  /// Starts this program's counts in the view, from 0, in `unit`.
  void start(std::string_view unit);
  void set_draws(bool draws) noexcept;
  void add_done(std::uint64_t done) noexcept;
  void begin_wait(Wait wait) noexcept;
  void end_wait(Wait wait) noexcept;
  /// All programs, in the order of the pipe; ended ones, too, until others take their records.
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

}  // namespace vfm::share

// The board that the programs of one pipe share on one machine. The board is a file, named by the
// user (VFM_SHARE). It holds the programs' worker slots (share/slots.h), and the counts that
// --progress shows.
//
// When a program ends, even by a kill, its record and its slots become free. Waiting programs
// notice this within 50 ms. When a living program gives a slot back, the next program wakes at
// once. share/slot_rule.h decides which program is next. The order of the programs follows from the
// pipes that they read and write.
//
// A program that is stopped (SIGSTOP) gets no more slots after 50 ms. Programs that have waited for
// two seconds take the slots of the stopped program and log this. When the stopped program
// continues, its threads wait for slots again at their next safe point (base/safe_point.h), usually
// within the time of one frame. Until then, more threads compute than there are slots. If a program
// is stopped while it joins, programs that join later wait and log its name (share/pipe_lock.h).
//
// The file has 80 KiB, and serves up to 63 programs at a time. Later programs use the same file
// again. A file with other content is refused. The file must be on a local file system, since the
// programs use open file description locks (fcntl(2)) and futexes. While these programs run,
// nothing may remove the file, and only they may change it. Thread-safety: any thread.
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

/// The state of one program. All seconds include waits that have not yet ended.
struct StageState {
  std::string name, unit;  ///< Program and its unit of work: "vfm-clip", "videos".
  std::int64_t pid = 0;
  bool alive = false;            ///< Whether the program still runs.
  bool stopped = false;          ///< Whether SIGSTOP or Ctrl-Z stopped the program.
  bool draws = false;            ///< Whether the program wants to draw the progress of the pipe.
  bool self = false;             ///< Whether this is the calling program.
  int held = 0;                  ///< Slots that the program has.
  int most = 0;                  ///< Largest number of slots that the program may have.
  int waiting = 0;               ///< Items that were read, but not begun.
  std::int64_t input_bytes = 0;  ///< Bytes that wait in the pipe that the program reads.
  std::uint64_t done = 0;        ///< Finished units of work.
  double input_seconds = 0;      ///< Seconds in which the program waited for input.
  double output_seconds = 0;     ///< Seconds in which the program waited for its reader.
  double slot_seconds = 0;       ///< Seconds of waiting for slots, summed over threads.
  double busy_seconds = 0;       ///< Seconds with a slot, summed over threads.
  double age = 0;                ///< Seconds from joining until now, or until the program left.
};

class PipeMap;
enum class Taken;

class PipeBoard {
 public:
  /// A program that joins the board: its displayed name, and the file descriptors of its input and
  /// output.
  struct Stage {
    std::string name;
    int input = 0, output = 1;
  };
  using Use = SlotUse;
  enum class Wait { input, output };

  /// Opens or makes the file `path`, and joins. The programs share `slots` slots. If `slots` is 0,
  /// uses the number of the other programs. If there is no other program, uses `otherwise`. If
  /// `slots` is kNone, the board only shows counts. Throws Stopped. Throws Error{usage} if the file
  /// cannot be used, or if living programs gave another number of slots.
  PipeBoard(const std::string& path, int slots, int otherwise, const Stage& stage);
  ~PipeBoard();
  PipeBoard(const PipeBoard&) = delete;
  PipeBoard& operator=(const PipeBoard&) = delete;

  static constexpr int kNone = -1;
  static constexpr int kMostSlots = 4096;
  /// Returns the number of slots that the programs share, or kNone if the board only shows counts.
  int slots() const;
  /// Sets the largest number of slots that this program takes at a time. The default is 1.
  void set_most(int most);

  /// Waits for a slot. With Use::help, waiting items of all programs get slots before this thread.
  /// Returns false if `over` becomes true first. Throws Stopped.
  bool acquire(Use use, const std::atomic<bool>* over = nullptr);
  void release() noexcept;
  /// Returns whether threads of this program still use slots that other programs took while this
  /// program was stopped.
  bool owes() const;
  /// Returns whether an item of any program waits for a slot.
  bool wanted() const;
  /// These two functions are for a board without slots, whose programs use slots of make.
  /// show_waiting() reports that a thread begins (+1) or ends (-1) a wait for a slot. show_held()
  /// reports that a thread gets (+1) or returns (-1) a slot.
  void show_waiting(int by) noexcept;
  void show_held(int by) noexcept;
  /// Changes the number of make's jobserver tokens that this program has. Call it right after
  /// reading a token and right before writing a token, so that a kill rarely loses a token.
  void show_tokens(int by) noexcept;
  /// Takes the jobserver tokens of killed programs, and returns their number. The caller writes the
  /// tokens back to the jobserver.
  int take_lost_tokens() noexcept;

  /// Sets this program's displayed counts to 0, and their unit to `unit`.
  void start(std::string_view unit);
  void set_draws(bool draws) noexcept;
  void add_done(std::uint64_t done) noexcept;
  void begin_wait(Wait wait) noexcept;
  void end_wait(Wait wait) noexcept;
  /// Returns all programs in the order of the pipe. Programs that have ended are included until
  /// other programs take their records.
  std::vector<StageState> stages() const;

 private:
  Taken take(Use use, bool out_of_turn);
  void look_for_dead();
  std::vector<std::string> look_for_stopped();
  void add_held(int by);
  void add_waiting(Use use, int by);

  std::unique_ptr<PipeMap> map_;
  // Guarded by the mutex of the map.
  std::uint64_t looked_ = 0, turns_ = 0;  // time of the latest look for dead programs; looks so far
  std::vector<int> stopped_looks_;        // for each record: looks in a row while stopped
};

}  // namespace vfm::share

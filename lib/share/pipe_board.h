// The board that the programs of one pipe share on one machine: a file that the user names
// (VFM_SHARE), with the programs' worker slots (share/slots.h) and the counts that a view of the
// pipe shows.
//
// A record of the file belongs to one program, which holds a lock on one byte of the file as long
// as it lives. The kernel frees that lock however the program ends. Then the program's record and
// slots are free. Waiting programs notice this within 50 ms. A slot that a living program gives
// back wakes the next program at once. share/slot_rule.h decides which program is next.
//
// A slot is a word of the file with the number of the program that has it. One atomic exchange
// takes or gives a slot, so no lock can hold up other programs, and a kill leaves nothing half
// done. The pipes that a program reads and writes tell its place in the pipe. A program that is
// stopped (SIGSTOP) loses its turn for slots after 50 ms. Once other programs have waited for two
// seconds, they take its slots and log that. When the stopped program continues, its threads wait
// for slots again at their next safe point (base/safe_point.h), at most about a frame later. Until
// then more threads compute than there are slots. A program holds the file's lock while it joins,
// for microseconds. If it is stopped during this time, programs that join later wait, and log its
// name (share/pipe_lock.h).
//
// The file has 80 KiB, for up to 63 programs at a time, and remains for later programs. A file with
// other content is refused. Locks are open file description locks (fcntl(2)) and waits are futexes
// in the mapped file, so the file must be on a file system of this machine. As long as these
// programs run, nothing else may remove or change the file.
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

/// The state of one program. `slot_seconds` and `busy_seconds` are sums over its threads. Waits
/// under way are included.
struct StageState {
  std::string name, unit;  ///< the program and its unit of work: "vfm-clip", "videos"
  std::int64_t pid = 0;
  bool alive = false;            ///< whether it still runs
  bool stopped = false;          ///< whether SIGSTOP or Ctrl-Z stopped it, if that is visible
  bool draws = false;            ///< whether it wants to draw the view
  bool self = false;             ///< whether it is this program
  int held = 0;                  ///< slots that it has
  int most = 0;                  ///< slots that it may have
  int waiting = 0;               ///< items read, but not begun
  std::int64_t input_bytes = 0;  ///< bytes in the pipe that it reads
  std::uint64_t done = 0;        ///< units of work done
  double input_seconds = 0;      ///< seconds that it waited for input
  double output_seconds = 0;     ///< seconds that it waited for its reader
  double slot_seconds = 0;       ///< seconds that its threads waited for slots
  double busy_seconds = 0;       ///< seconds that its threads had a slot
  double age = 0;                ///< seconds from joining until now, or until it left
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

  /// Opens or makes `path`, and joins. The programs share `slots` slots; 0 means the number that
  /// the programs on the board gave, or `otherwise` if the board is empty. With kNone the board
  /// only shows counts. Throws Error{usage} if `path` cannot be used, or if living programs gave
  /// another number than `slots`; Stopped.
  PipeBoard(const std::string& path, int slots, int otherwise, const Stage& stage);
  /// Leaves the board.
  ~PipeBoard();
  PipeBoard(const PipeBoard&) = delete;
  PipeBoard& operator=(const PipeBoard&) = delete;

  static constexpr int kNone = -1;
  static constexpr int kMostSlots = 4096;
  /// Returns how many slots the programs share, or kNone if the board only shows counts.
  int slots() const;
  /// Sets the most slots that this program takes. The default is 1.
  void set_most(int most);

  /// Waits for a slot; with Use::help, also until no item of any program waits. Returns false if
  /// `over` becomes true first. Throws Stopped.
  bool acquire(Use use, const std::atomic<bool>* over = nullptr);
  void release() noexcept;
  /// Returns whether threads of this program hold slots that other programs took while it was
  /// stopped.
  bool owes() const;
  /// Returns whether an item of any program waits for a slot.
  bool wanted() const;
  /// Say, for a board without slots, that a thread begins (+1) or ends (-1) to wait for a slot from
  /// elsewhere, or to hold such a slot.
  void show_waiting(int by) noexcept;
  void show_held(int by) noexcept;
  /// Changes this program's count of make's tokens. Call it right after reading a token and right
  /// before writing one: only a kill in between loses a token.
  void show_tokens(int by) noexcept;
  /// Takes the tokens of killed programs; the caller gives them back to make. Looks for killed
  /// programs at most every 50 ms.
  int take_lost_tokens() noexcept;

  /// Starts this program's counts in the view at 0, in `unit`.
  void start(std::string_view unit);
  void set_draws(bool draws) noexcept;
  void add_done(std::uint64_t done) noexcept;
  void begin_wait(Wait wait) noexcept;
  void end_wait(Wait wait) noexcept;
  /// Returns all programs in the order of the pipe, also ended programs until other programs take
  /// their records.
  std::vector<StageState> stages() const;

 private:
  Taken take(Use use, bool out_of_turn);
  void look_for_dead();
  std::vector<std::string> look_for_stopped();
  void add_held(int by);
  void add_waiting(Use use, int by);

  std::unique_ptr<PipeMap> map_;
  // Under the mutex.
  std::uint64_t looked_ = 0, turns_ = 0;  // last look for programs that died, and how many looks
  std::vector<int> stopped_looks_;        // of each record: how often it was stopped in a row
};

}  // namespace vfm::share

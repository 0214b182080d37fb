// A file of fixed size that the programs of a pipe map into memory and lock byte by byte. The
// shared boards (share/pipe_board.h, share/card_board.h) are such files.
//
// A reader or writer of the mapped data locks byte 0. The program with record i locks byte 1 + i as
// long as it lives. The kernel frees both locks however a program ends. They are open file
// description locks (fcntl(2)), so the file must be on a file system of this machine.
// Thread-safety: stated at each function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace vfm::share {

/// Nanoseconds of the monotonic clock, which all programs of a machine share.
std::uint64_t pipe_clock();

/// Longest wait, in nanoseconds (50 ms), before a waiting thread looks again.
inline constexpr std::uint64_t kSharedTurn = 50'000'000;

/// Waits until a word of a shared file differs from `seen`, at most kSharedTurn. Returns false if
/// it did not change.
bool wait_for_call(std::atomic<std::uint32_t>& call, std::uint32_t seen);
/// Changes the word, and wakes up to `most` threads that wait for it.
void call(std::atomic<std::uint32_t>& call, int most);

/// The result of an attempt to take a slot or a card; `left` means that a slot or card is free, but
/// is left to another program.
enum class Taken { yes, no, left };
/// Calls `take` until it returns Taken::yes: at once, after each call(), and every kSharedTurn.
/// Returns false if `over` becomes true first. Each program changes the word `takes` when it takes
/// a slot or card. `take` gets `out_of_turn` = true if it left a slot or card to another program,
/// and for kSharedTurn no program took one. `count` adds `by` to the number of waiters; a
/// successful `take` subtracts its own waiter. Throws Stopped, and what `take` throws.
bool take_in_turn(std::atomic<std::uint32_t>& call, const std::atomic<std::uint32_t>& takes,
                  const std::atomic<bool>* over, const std::function<void(int by)>& count,
                  const std::function<Taken(bool out_of_turn)>& take);

/// The beginning of the mapped file.
struct SharedHead {
  char words[24];
  std::atomic<std::int64_t> locker;  ///< the process that has the file's lock; 0: not known
};

class SharedFile {
 public:
  /// Opens or makes the file `path` of `size` bytes, which begin with a SharedHead of these
  /// `words`. If `path` is empty, uses memory of this program only. Throws Stopped; Error{usage} if
  /// the file cannot be used or has other content. The message names `option`.
  SharedFile(const std::string& path, std::size_t size, std::string_view words,
             std::string_view option);
  /// Frees the file's lock and the records' locks.
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  void* memory() const { return memory_; }

  /// Holds the file's lock for a scope; only one thread of all programs has it at a time. It takes
  /// `mutex` first, since threads of one program share the file's description. A thread that waits
  /// for another program logs that after two seconds (share/pipe_lock.h). In two cases the thread
  /// continues without the lock, and may see unfinished changes: if the kernel refuses the lock for
  /// lack of memory, and if a stop request (base/stop.h) ends the wait. Then the thread may change
  /// only this program's own data.
  class Locked {
   public:
    explicit Locked(SharedFile& file);
    ~Locked();
    /// Returns whether a stop request ended the wait for the lock.
    bool stops() const { return stops_; }
    /// Throws Stopped if a stop request ended the wait.
    void need() const;
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

   private:
    SharedFile& file_;
    std::lock_guard<std::mutex> lock_;
    bool stops_;
  };
  std::mutex mutex;
  /// Takes the file's lock without waiting. Returns false if another program has it. The caller
  /// holds `mutex`.
  bool try_lock();
  void unlock();

  /// Returns true if another program holds the record's lock, or if that is unknown. Any thread.
  bool lives(std::size_t record) const;
  /// Takes a record's lock. Returns false if another program has it. With `apart`, the lock belongs
  /// to a separate open file description, life(). Processes that inherit life() hold the lock, too.
  bool live(std::size_t record, bool apart = false);
  /// Returns the descriptor that live() opened with `apart`, or -1 if there is none.
  int life() const { return life_fd_; }

 private:
  void open();
  void map(std::size_t size, std::string_view words);
  void close();
  SharedHead& head() const { return *static_cast<SharedHead*>(memory_); }

  const std::string path_, option_;
  int fd_ = -1, life_fd_ = -1;
  std::size_t size_ = 0;
  void* memory_ = nullptr;
};

}  // namespace vfm::share

// A file of fixed size that the programs of a pipe map into memory and lock byte by byte.
//
// A reader or writer of the mapped data locks byte 0. The program with record i locks byte 1 + i
// while it runs. The locks are those of share/pipe_lock.h, so the file must be on a local file
// system.
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

/// Returns the time of the monotonic clock in nanoseconds. All programs of a machine share this
/// clock.
std::uint64_t pipe_clock();

/// Longest time in nanoseconds (50 ms) before a waiting thread looks again at the file.
inline constexpr std::uint64_t kSharedTurn = 50'000'000;

/// Waits until the word `call` of a shared file differs from `seen`, for at most kSharedTurn.
/// Returns false if the word did not change.
bool wait_for_call(std::atomic<std::uint32_t>& call, std::uint32_t seen);
/// Changes the word `call`, and wakes at most `most` threads that wait for this word.
void call(std::atomic<std::uint32_t>& call, int most);

/// The result of an attempt to take a slot or a GPU. `left` means that a slot or GPU is free, but
/// another program should get it.
enum class Taken { yes, no, left };
/// Calls `take` immediately, after each change of the word `call`, and every kSharedTurn, until
/// `take` returns Taken::yes. Returns false if `over` becomes true first.
///
/// `takes` is a word that each program changes when it takes a slot or GPU. If `take` returned
/// Taken::left, and no program took a slot or GPU for kSharedTurn, the next `take` gets
/// `out_of_turn` = true. `count` adds `by` to the number of waiters. A `take` that succeeds must
/// itself subtract one waiter. Throws Stopped, and what `take` throws.
bool take_in_turn(std::atomic<std::uint32_t>& call, const std::atomic<std::uint32_t>& takes,
                  const std::atomic<bool>* over, const std::function<void(int by)>& count,
                  const std::function<Taken(bool out_of_turn)>& take);

struct SharedHead {
  char words[24];
  std::atomic<std::int64_t> locker;  ///< Process that has the file's lock, or 0 if unknown.
};

class SharedFile {
 public:
  /// Opens the file `path` of `size` bytes, or makes it. The file begins with a SharedHead with
  /// these `words`. If `path` is empty, uses memory of this program instead of a file. Throws
  /// Stopped. Throws Error{usage} if the file cannot be used or has other content; the message
  /// names `option`.
  SharedFile(const std::string& path, std::size_t size, std::string_view words,
             std::string_view option);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  void* memory() const { return memory_; }

  /// Holds the file's lock, and `mutex`, for a scope. Only one thread of all programs has the lock
  /// at a time. If a thread waits longer than two seconds, it logs a warning (share/pipe_lock.h).
  ///
  /// If the kernel has no memory for the lock, or if a stop request (base/stop.h) ends the wait,
  /// the thread continues without the lock. Then it can see unfinished changes, and must change
  /// only this program's data.
  class Locked {
   public:
    explicit Locked(SharedFile& file);
    ~Locked();
    bool stops() const { return stops_; }
    /// Throws Stopped if a stop request ended the wait for the lock.
    void need() const;
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

   private:
    SharedFile& file_;
    std::lock_guard<std::mutex> lock_;
    bool stops_;
  };
  std::mutex mutex;
  /// Takes the file's lock without waiting. Returns false if another program has the lock. The
  /// caller holds `mutex`.
  bool try_lock();
  void unlock();

  /// Returns whether another program holds the record's lock. Returns true if that is unknown. Any
  /// thread.
  bool lives(std::size_t record) const;
  /// Takes a record's lock. Returns false if another program has the lock. With `apart`, the lock
  /// belongs to a second open file description (of the descriptor life()). A process that inherits
  /// life() also holds the lock.
  bool live(std::size_t record, bool apart = false);
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

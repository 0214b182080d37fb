// Inside lib/dist only: how a rank waits for the others, and when it gives up.
//
// MPI's collectives wait for ever, so one rank that is stopped or lost would hang the run. The
// ranks meet here before each MPI collective, and wait here for messages of groups. A rank that
// waits longer than the section's limit tells all others where it waits and for which ranks. Every
// other rank that waits answers in the same way. A rank that does not answer, and for which some
// rank waits directly or through others, is missing. The lowest rank that is past its limit names
// the missing rank and ends the run with status 1. If every rank waits for another, that lowest
// rank reports where each waits.
// Time in which this process was stopped does not count, so suspending and resuming a job causes no
// error. After a moment of polling, a wait sleeps and leaves the processor to others.
// Thread-safety: the thread that calls MPI; section() may be called from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace vfm::dist {

/// The message of a waiting rank to all others.
struct Waits {
  bool too_long = false;
  std::optional<std::vector<int>> awaited;  // ranks that it waits for; none: all ranks
  std::string place;
};

class Meeting {
 public:
  /// A collective.
  Meeting(int rank, int size, const std::string& host);
  /// Every rank must have left its last collective before.
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// The same as World::section().
  void section(std::string_view what, double limit);

  /// Calls `done` again and again, and returns when it returns true. `place` says in messages where
  /// this rank waits. `awaited` returns the ranks that it waits for; null: all ranks.
  void until(const std::string& place, const std::function<bool()>& done,
             const std::function<std::vector<int>()>& awaited);
  /// Sets a function that is called at each turn of a wait.
  void meanwhile(std::function<void()> act) { meanwhile_ = std::move(act); }
  /// "rank 3 on host b".
  std::string name_of(int rank) const;

  /// Waits until all ranks are here, then runs one blocking MPI call. Returns its result.
  template <class Call>
  int then(const char* operation, Call&& call) {
    come(operation);
    inside_ = true;
    const int code = call();
    inside_ = false;
    return code;
  }

 private:
  void come(const char* operation);
  void listen(const std::function<std::vector<int>()>& awaited);
  void say(bool too_long, const std::function<std::vector<int>()>& awaited);
  void send(std::string message);
  std::string place() const;
  std::string missing(std::string& where) const;
  std::string circle() const;
  [[noreturn]] void give_up();
  void watch();

  const int rank_, size_;
  std::vector<std::string> hosts_;
  std::function<void()> meanwhile_;
  struct Channel;  // hides MPI's types
  std::unique_ptr<Channel> channel_;

  std::mutex mutex_;  // guards what_, operation_, before_, end_ against the watching thread
  std::string what_;
  std::string operation_ = "MPI_Init";
  std::string before_;  // the operation before `operation_`
  std::atomic<double> limit_{0};
  std::atomic<std::int64_t> number_{0};  // number of waits
  std::int64_t collectives_ = 0;         // number of collectives of all ranks
  std::atomic<bool> inside_{false};

  std::optional<Waits> said_;  // last message of this rank to all others; none if it does not wait
  std::vector<std::optional<Waits>> heard_;  // by rank: its last message; none if it does not wait
  std::list<std::string> letters_;           // messages to others, kept while they travel

  bool end_ = false;
  std::condition_variable ended_;
  std::thread watcher_;
};

}  // namespace vfm::dist

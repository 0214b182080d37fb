// Inside lib/dist only: how a rank waits for the others, and when it gives up.
//
// MPI's collectives wait as long as it takes, so one rank that is stopped or lost would hang the
// run. Before each of them the ranks meet here, and the messages of groups are waited for here. A
// rank that waits longer than the section's limit tells all others where it waits, and for whom;
// those that wait, too, answer alike. Who waits for a rank that says nothing, itself or by way of
// others, knows by then who it is: the lowest that is past its limit names it, and ends the run
// with status 1. If all wait, it is for each other, and it says where. Time in which this process
// was itself stopped does not count, so suspending and resuming a job is no error. Waiting leaves
// the processor to others after a moment.
// Thread-safety: the thread that calls MPI; section() any.
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

/// What a rank that waits tells the others.
struct Waits {
  bool too_long = false;
  std::optional<std::vector<int>> awaited;  // none: all ranks
  std::string place;
};

class Meeting {
 public:
  /// A collective.
  Meeting(int rank, int size, const std::string& host);
  /// Every rank must have left its last collective.
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// As World::section().
  void section(std::string_view what, double limit);

  /// Returns when `done` does, which is asked again and again. `place` is where this rank waits,
  /// for messages; `awaited` tells for which ranks, null: all.
  void until(const std::string& place, const std::function<bool()>& done,
             const std::function<std::vector<int>()>& awaited);
  /// What is done at each turn of a wait.
  void meanwhile(std::function<void()> act) { meanwhile_ = std::move(act); }
  /// "rank 3 on host b".
  std::string name_of(int rank) const;

  /// All ranks meet, then run one blocking call. Returns what it returns.
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
  struct Channel;  // MPI's own, which headers do not name
  std::unique_ptr<Channel> channel_;

  std::mutex mutex_;  // guards what_, operation_, before_, end_ against the watching thread
  std::string what_;
  std::string operation_ = "MPI_Init";
  std::string before_;  // the one before
  std::atomic<double> limit_{0};
  std::atomic<std::int64_t> number_{0};  // of waits
  std::int64_t collectives_ = 0;         // of all ranks
  std::atomic<bool> inside_{false};

  std::optional<Waits> said_;                // of this rank, to all others
  std::vector<std::optional<Waits>> heard_;  // by rank: those who wait, as far as this one knows
  std::list<std::string> letters_;           // lie here while they travel

  bool end_ = false;
  std::condition_variable ended_;
  std::thread watcher_;
};

}  // namespace vfm::dist

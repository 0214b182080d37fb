// Inside lib/dist only: how a rank waits for the others, and when it gives up.
//
// MPI's collectives wait as long as it takes, so one rank that is stopped or lost would hang the
// run. Before each of them the ranks meet here. A rank that waits longer than the section's limit
// asks the others where they are; those that wait too answer, and the lowest of them names the
// ranks that did not, and ends the run with status 1. Time in which this process was itself stopped
// does not count, so suspending and resuming a job is no error. Waiting leaves the processor to
// others after a moment.
// Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace vfm::dist {

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

  /// The ranks meet, then run one blocking call. Returns what it returns.
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
  void listen();
  void say();
  bool waits_here(int rank) const;
  [[noreturn]] void give_up();
  void watch();
  std::string place() const;

  const int rank_, size_;
  std::vector<std::string> hosts_;
  struct Channel;  // MPI's own, which headers do not name
  std::unique_ptr<Channel> channel_;

  std::mutex mutex_;  // guards what_, operation_, before_, end_ against the watching thread
  std::string what_;
  const char* operation_ = "MPI_Init";
  const char* before_ = "";  // the collective before
  std::atomic<double> limit_{0};
  std::atomic<std::int64_t> number_{0};  // of this collective
  std::atomic<bool> inside_{false};

  bool said_so_ = false;            // this rank has sent the others where it waits
  std::deque<std::int64_t> said_;   // lies here while messages travel
  std::vector<std::int64_t> here_;  // by rank: the last collective it said it waits in

  bool end_ = false;
  std::condition_variable ended_;
  std::thread watcher_;
};

}  // namespace vfm::dist

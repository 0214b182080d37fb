// Inside lib/dist only: how a rank waits for the others, and when it gives up.
//
// MPI's collectives wait for ever, so one rank that is stuck would hang the run. The ranks meet
// here before each MPI collective, and wait here for messages of groups. Near the end of the
// section's limit (dist/section_times.h) a rank tells all others where it waits and for which
// ranks. Every other rank that waits answers in the same way. A rank that does not answer, and for
// which some rank waits directly or through others, is missing. The lowest rank that is past its
// limit names the missing rank and ends the run (give_up_by). If every rank waits for another, that
// lowest rank reports where each waits. Ranks that are stopped or lost are found sooner
// (dist/pulse.h). Time in which this process was stopped does not count, so suspending and resuming
// a job causes no error. After a moment of polling, a wait sleeps and leaves the processor to
// others. Thread-safety: the thread that calls MPI; section() may be called from any thread.
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

#include "dist/device_carrier.h"
#include "dist/flight_recorder.h"

namespace vfm::dist {

/// The message of a waiting rank to all others.
struct Waits {
  bool too_long = false;
  std::optional<std::vector<int>> awaited;  // ranks that it waits for; none: all ranks
  std::string place;
};

class Meeting {
 public:
  /// A collective. `hosts` are the names of the ranks' hosts.
  Meeting(int rank, std::vector<std::string> hosts, FlightRecorder& recorder);
  /// Every rank must have left its last collective before.
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// The same as World::section(), which has set the limit.
  void section(std::string_view what, const Section& section);
  /// Sets what ends the run: a function of the message and the missing ranks that does not return.
  using GiveUp = std::function<void(std::string, std::vector<int>)>;
  void give_up_by(GiveUp give_up);

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
  int then(const std::string& operation, Call&& call) {
    const FlightRecorder::Ticket ticket = come(operation);
    inside_ = true;
    recorder_.waits(true);
    const int code = call();
    recorder_.waits(false);
    inside_ = false;
    recorder_.end(ticket);
    return code;
  }

 private:
  FlightRecorder::Ticket come(const std::string& operation);
  void listen(const std::function<std::vector<int>()>& awaited);
  void say(bool too_long, const std::function<std::vector<int>()>& awaited);
  void send(std::string message);
  std::string place() const;
  std::vector<int> missing(std::string& where) const;
  std::string circle() const;
  std::string limit_words() const;
  [[noreturn]] void give_up();
  [[noreturn]] void end_run(std::string message, std::vector<int> ranks);
  void watch();

  const int rank_, size_;
  FlightRecorder& recorder_;
  const int recorded_as_;  // the number of all ranks there
  const std::vector<std::string> hosts_;
  std::function<void()> meanwhile_;
  struct Channel;  // hides MPI's types
  std::unique_ptr<Channel> channel_;

  mutable std::mutex mutex_;  // guards what_ .. give_up_, and end_, against the watching thread
  std::string what_;
  bool learnt_ = false;
  GiveUp give_up_;
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

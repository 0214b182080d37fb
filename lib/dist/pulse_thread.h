// Inside lib/dist only: the thread of a rank that beats and watches (dist/pulse.h), and ends the
// process when the run ends because of a lost rank.
//
// The thread makes the connections (dist/pulse_dial.h), says once if some cannot be made, and then
// takes part in the pulse. At the end of the run because of a rank it writes the rank's record
// (dist/flight_recorder.h) into the folder of record_to(), as rank-00003.json. Rank 0 also writes
// run.json there: why, when, and the last beats of all. Another rank that tells people writes it
// only if there is none. A rank that was silent writes nothing: when it runs again, the folder may
// be that of a later start. Then the process ends at once, without destructors: the other threads
// may be in calls of MPI or NCCL that never return. It waits seconds at most for a disk, and for
// who reads its messages. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dist/flight_recorder.h"
#include "dist/pulse.h"
#include "dist/pulse_dial.h"

namespace vfm::dist {

/// What the ranks told each other at the start.
struct PulsePlan {
  int rank = 0;
  std::vector<Pulse::Rank> ranks;
  std::vector<int> ports;              ///< by rank: where it listens; 0: it does not
  std::vector<std::string> addresses;  ///< of rank 0
  PulseToken token{};
  PulseListener listener;    ///< of this rank
  double dial_seconds = 10;  ///< in which the connections are made
};

class PulseThread {
 public:
  PulseThread(PulsePlan plan, FlightRecorder& recorder);
  /// leave("").
  ~PulseThread();
  PulseThread(const PulseThread&) = delete;
  PulseThread& operator=(const PulseThread&) = delete;

  /// Seconds within which a silent rank is named, at least 5; 0: silence is never an error.
  void limit(double seconds);
  /// Where the records go; "": nowhere.
  void record_to(const std::string& folder);
  /// Ends the run on all ranks; after leave() only this process.
  [[noreturn]] void give_up(PulseEnd end);
  /// Says goodbye, and ends the thread. `why`: "" at the end of the run. Does not return if the run
  /// ends because of a rank.
  void leave(const std::string& why);
  /// Returns after `seconds`, or never if the run ends because of a rank. For an error that may
  /// come from that.
  void wait_for_end(double seconds);

 private:
  void run();
  void begin();
  void poll_all();
  void say_connected(int rank, const std::string& address) const;
  void say_missing() const;
  void say_goodbye();
  void finish();
  void run_beside(std::function<void()> act);
  std::string of_run() const;
  void write_of_run(const std::string& path, const std::string& run) const;
  void write_records(const std::string& folder, const std::string& run);

  const PulsePlan plan_;
  FlightRecorder& recorder_;
  Pulse pulse_;
  PulseDial dial_;
  const int wake_;  // an eventfd

  std::mutex mutex_;  // guards folder_ .. left_
  std::string folder_;
  std::optional<PulseEnd> reported_;
  std::optional<std::string> leaves_;
  bool left_ = false;  // the thread ends, and tells nothing more
  std::atomic<double> silence_;
  std::atomic<bool> ends_{false};
  std::atomic<int> beside_{0};  // threads that tell of the end and write records
  bool dialled_ = false;
  std::thread thread_;
};

}  // namespace vfm::dist

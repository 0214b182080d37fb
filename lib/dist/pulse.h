// Inside lib/dist only: finds out within seconds that a rank of the run is lost, and ends the run
// on all ranks. This is the logic; dist/pulse_thread.h runs it, over connections apart from MPI's.
//
// The ranks are a tree. The first rank of each host has connections with the ranks of its host, and
// rank 0, the hub, with the first ranks of all hosts. Each end of a connection sends a beat a
// second, and watches the other end. A connection that is closed without a goodbye is a process
// that was killed. One that is silent is a process that is stopped, or a host or link that is down.
// The finder tells the hub, and the hub tells all. Where the hub is the lost one, or a rank has
// lost its way to the hub, it acts by itself. After a time in which this process did not run, it
// waits for the others anew, so a job that is suspended and resumed goes on. Frames: 'B' a beat,
// with what FlightRecorder::beat() says of the rank on the way up; 'G' goodbye, with why if that is
// not the end of the run; 'L' on the way up and 'E' on the way down, the end of the run (PulseEnd);
// 'R' a rank has written its record. Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dist/pulse_link.h"

namespace vfm::dist {

/// The status of a process that ends because another rank was lost.
inline constexpr int kLostStatus = 5;

/// Why the run ends.
struct PulseEnd {
  /// "silent": nothing came from `rank`; "ended": its process is gone; "left": it went away alone;
  /// "stuck": `ranks` did not come to a collective; "error": `rank` failed and has said why.
  std::string kind;
  int rank = -1;
  std::vector<int> ranks = {};
  double seconds = 0;     ///< of silence
  std::string text = {};  ///< what the finder knows
  int status = kLostStatus;
  std::string message = {};  ///< what people are told; of an end that has reached its teller
  bool tells = false;        ///< this rank tells it

  std::string to_text() const;
  /// Throws Error.
  static PulseEnd from_text(const std::string& text);
};

class Pulse {
 public:
  struct Rank {
    std::string host;
    int pid = 0;
    int first = 0;  ///< the first rank of its host
  };
  /// `beat` returns what this rank tells of itself.
  Pulse(int rank, std::vector<Rank> ranks, std::function<std::string()> beat);

  /// The rank that this one connects to; -1 for rank 0.
  int parent() const { return parent_of(rank_); }
  /// The ranks that connect to this one.
  std::vector<int> children() const;
  /// The connection with a parent or child stands from now on.
  void connect(int rank, int fd, double now);
  bool connected(int rank) const { return links_.contains(rank); }
  /// Seconds of silence after which a rank is lost; 0: never.
  void limit(double seconds) { limit_ = seconds; }

  /// Reads what has come, sends what is due, and judges. Call it when a connection has something to
  /// read, and at least every kTurn seconds. `now` is in seconds of a steady clock.
  void turn(double now);
  static constexpr double kTurn = 0.5;
  /// Descriptors to poll for reading.
  std::vector<int> descriptors() const;

  /// What this rank itself found, such as a rank that is stuck, or its own error.
  void report(PulseEnd end, double now);
  /// Why the run ends, once it does. This rank then writes its record.
  const std::optional<PulseEnd>& end() const { return end_; }
  /// Whether this process may go, where `recorded` says whether its record is written.
  bool may_go(bool recorded, double now);
  /// Says goodbye. `why`: "" at the end of the run. Then keep the connections until it has_left(),
  /// or what is said last is lost with them.
  void leave(const std::string& why);
  bool has_left();
  /// The last beats by rank, as FlightRecorder::beat() wrote them; on the hub of all ranks.
  const std::vector<std::string>& beats() const { return beats_; }
  /// "rank 3 on host b (pid 77)".
  std::string name_of(int rank) const;

 private:
  struct Link {
    PulseLink link;
    double heard = 0;
    bool closed = false;
    bool recorded = false;            // 'R' came from a child, or went to the parent
    std::optional<double> left = {};  // when it said goodbye
    std::string why = {};             // it left before the end of the run
  };
  int parent_of(int rank) const;
  bool watched(const Link& link) const { return !link.closed && !link.left; }
  void read(int rank, Link& link, double now);
  void take(int from, Link& link, const PulseLink::Frame& frame, double now);
  void judge(double now);
  void lost(PulseEnd end, double now);
  void finish(PulseEnd end, double now, int from = -1);
  bool tells_of(int rank) const;
  std::string words(const PulseEnd& end) const;
  std::string did_last(int rank) const;
  std::string behind() const;

  const int rank_;
  const std::vector<Rank> ranks_;
  const std::function<std::string()> beat_;
  double limit_ = 8;
  std::map<int, Link> links_;
  std::vector<std::string> beats_;
  std::optional<double> turned_;  // when the last turn was
  double next_beat_ = 0, next_full_ = 0;
  std::optional<double> told_up_;  // when this rank told the hub of a lost one
  std::optional<PulseEnd> told_;   // what
  bool stopped_ = false;           // a signal to stop was seen in an earlier turn
  std::optional<PulseEnd> end_;
  double ended_ = 0;             // when
  std::optional<double> ready_;  // when the record of this rank and of its children were written
};

}  // namespace vfm::dist

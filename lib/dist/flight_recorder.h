// The last collectives of a rank, for when its run dies.
//
// The recorder keeps the last kKept operations of all groups: which group, which number, what, when
// begun and when ended. Groups (dist/message_group.h) and the collectives of the MPI world report
// to it. An operation over NCCL ends when the GPU has finished it. A group has the same number on
// all its ranks, since all ranks make all groups in the same order. beat() is what a rank tells the
// others each second (dist/pulse.h), and record() is the file of a dead run, which dist/why.h
// reads:
//
//   {"rank":3,"host":"b","pid":77,"start":"5d0c...","time":T,"section":"step","error":"",
//    "waits":true,
//    "groups":[{"group":2,"axis":"tp","ranks":[2,3],"begun":31,"ended":30}],
//    "collectives":[{"group":2,"number":31,"what":"all_gather of F32 elements [4 4]","begun":T},
//                   {"group":5,"what":"receive of F32","from":1,"received":17,"begun":T,
//                    "ended":T}]}
//
// Times are seconds since 1970. "start" tells the starts of a run apart. An operation that is not
// finished has no "ended". It may go on while the rank computes: "waits" says whether the rank
// waits for others, except by way of the GPU, whose operations have "gpu":true. Messages between
// two ranks have no number of the group; "sent" and "received" count the messages to or from a
// rank. An entry costs a lock, two clocks and a copied text, and no allocation after a while.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vfm::dist {

class FlightRecorder {
 public:
  static constexpr std::size_t kKept = 1000;
  /// Bytes of a description that are kept. What is cut is told apart by a hash.
  static constexpr std::size_t kMostText = 200;
  static constexpr std::size_t kMostBeat = 65536;

  /// An operation that was begun.
  struct Ticket {
    std::int64_t entry = -1, number = 0;
    int group = -1;
  };

  /// Says whose recorder it is.
  void name(int rank, std::string host);
  /// All ranks of one start of the run say the same, and those of another one something else.
  void start(std::string start);
  std::string start() const;
  /// Registers a group of these ranks of the world, and returns its number.
  int add_group(std::string axis, std::vector<int> ranks);
  /// Collective `number` of the group begins; `what` is what all its ranks must call. `gpu`: the
  /// GPU waits for the other ranks, and the rank's thread does not.
  Ticket begin(int group, std::int64_t number, std::string_view what, bool gpu = false);
  /// A message to the rank `to` of the world begins, and one from `from`; -1: none.
  Ticket begin_message(int group, int to, int from, std::string_view what, bool gpu = false);
  void end(const Ticket& ticket);
  /// Whether the rank waits for other ranks from now on. Without this call it is not known.
  void waits(bool waits) { waits_ = waits ? 1 : 0; }
  /// The rank is in this section from now on (World::section).
  void section(std::string_view what);
  /// The rank fails with this error.
  void failed(std::string_view error);
  std::string error() const;

  /// {"section":"step","groups":[{"group":2,"first":0,"axis":"tp","begun":31,"what":"...",
  /// "ended":30,"messages":5,"last":"send of F32","open":1}]}; "first" is the group's lowest rank,
  /// and "open" of the "messages" between two ranks have not ended. Groups that make it longer than
  /// kMostBeat are not in it.
  std::string beat() const;
  std::string record() const;

 private:
  struct Members {
    std::string axis, begun_what, last_message;
    std::vector<int> ranks;
    std::int64_t begun = 0, ended = 0, messages = 0, open = 0;
    std::map<int, std::int64_t> sent, received;  // by rank
  };
  struct Entry {
    std::int64_t ticket = -1, number = 0, sent = 0, received = 0;
    int group = 0, to = -1, from = -1;
    double begun = 0, ended = 0;
    bool gpu = false;
    std::string what;
  };
  Entry& next(int group, std::string_view what, bool gpu);

  mutable std::mutex mutex_;
  int rank_ = 0;
  std::string host_, start_, section_, error_;
  std::vector<Members> groups_;
  std::vector<Entry> entries_;  // a ring; entry t is at t % kKept
  std::int64_t count_ = 0;
  std::atomic<int> waits_{-1};  // -1: not known
};

}  // namespace vfm::dist

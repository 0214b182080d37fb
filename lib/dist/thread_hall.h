// Inside lib/dist only: where the threads of dist/threads.h exchange messages.
//
// A message has two ends, which two ranks post. The rank that posts second copies the bytes, under
// the one lock of the hall; both ranks keep their memory until then.
// Thread-safety: any thread; functions that take a rank are called by the thread of that rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "dist/wire.h"

namespace vfm::dist {

/// Thrown on the other ranks when one has failed.
class OtherRankFailed : public Error {
 public:
  using Error::Error;
};

class ThreadHall {
 public:
  /// One end of a message. Ranks are numbers in the world.
  struct End {
    std::string group;  // tells the ends of different groups apart
    std::string place;  // for error messages
    int from = 0, to = 0, tag = 0;
    bool sends = false;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    bool landed = false;
  };
  explicit ThreadHall(int size) : ranks_(static_cast<std::size_t>(size)) {}

  /// Posts an end, which must stay at its address until it has landed or is withdrawn. Throws Error
  /// if the other end has another size, which is a failure of both ranks.
  void post(End& end);
  void withdraw(End& end);
  bool landed(const End& end);

  /// Says that `rank` calls `what` as collective number `number` of the group, in which all `of`
  /// ranks must call the same. Throws Error with both calls if another rank called something else.
  void compare(const std::string& group, const std::string& axis, std::int64_t number, int rank,
               std::size_t of, const std::string& what);

  /// Returns when `done` returns true. Calls it again whenever an end of this rank has landed.
  /// Throws Error if all ranks wait.
  void wait(int rank, const Running& running, const std::function<bool()>& done);
  /// From now on all ranks' calls throw, because `rank` failed.
  void fail_all(int rank, const std::string& why);
  /// Says that the rank makes no more calls.
  void leave(int rank);
  /// Throws Error if a rank failed.
  void check_all();

 private:
  struct Rank {
    std::int64_t landed = 0;  // number of its ends that have landed so far
    std::int64_t looked =
        -1;  // `landed` when it last began to sleep; it sleeps while both are equal
    bool left = false;
    std::string place;  // text that says where the rank waits
  };
  using Key = std::tuple<std::string, int, int, int>;

  void check() const;
  bool stuck() const;
  std::string places() const;
  void land(End& end);
  void fail_now(const std::string& why);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Rank> ranks_;
  std::map<Key, std::list<End*>> open_;  // ends without their other end: all sends or all receives
  struct Said {
    int rank;
    std::string what;
    std::size_t times;
  };
  std::map<std::pair<std::string, std::int64_t>, Said> said_;
  std::string failure_;  // the first failure; empty: none
};

}  // namespace vfm::dist

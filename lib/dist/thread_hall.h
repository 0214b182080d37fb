// Inside lib/dist only: where the threads of dist/threads.h meet, and what lies there.
//
// A message has two ends, which two ranks post. Who posts the second copies the bytes, under the
// one lock of the hall, while both ranks keep their memory.
// Thread-safety: any thread; a rank's functions that rank's.
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

/// What the other ranks throw when one has failed.
class OtherRankFailed : public Error {
 public:
  using Error::Error;
};

class ThreadHall {
 public:
  /// One end of a message; ranks are those of the world.
  struct End {
    std::string group;  // makes the ends of two groups differ
    std::string place;  // for errors
    int from = 0, to = 0, tag = 0;
    bool sends = false;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    bool landed = false;
  };
  explicit ThreadHall(int size) : ranks_(static_cast<std::size_t>(size)) {}

  /// Posts an end, which stays where it is until it has landed or is withdrawn. Throws Error if it
  /// and its other end have not the same size, which is a failure of both ranks.
  void post(End& end);
  void withdraw(End& end);
  bool landed(const End& end);

  /// Rank `rank` does `what` as number `number` of what `of` ranks must do alike: throws Error
  /// naming both if another did something else there.
  void compare(const std::string& group, const std::string& axis, std::int64_t number, int rank,
               std::size_t of, const std::string& what);

  /// Returns when `done` does; it is called again when an end of this rank has landed. Throws Error
  /// if all ranks wait.
  void wait(int rank, const Running& running, const std::function<bool()>& done);
  /// From now on all ranks' calls throw, because of this one.
  void fail_all(int rank, const std::string& why);
  /// The rank calls nothing any more.
  void leave(int rank);
  /// Throws Error if a rank failed.
  void check_all();

 private:
  struct Rank {
    std::int64_t landed = 0;  // ends, ever
    std::int64_t looked =
        -1;  // of them, when it last began to sleep: it sleeps while they are alike
    bool left = false;
    std::string place;  // where it waits: text
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
  std::map<Key, std::list<End*>> open_;  // ends that have no other yet; all sends or all receives
  struct Said {
    int rank;
    std::string what;
    std::size_t times;
  };
  std::map<std::pair<std::string, std::int64_t>, Said> said_;
  std::string failure_;  // the first; empty: none
};

}  // namespace vfm::dist

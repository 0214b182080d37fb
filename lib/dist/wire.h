// Inside lib/dist only: what a backend of the host is, threads or MPI. It moves messages; what a
// collective is made of them is the same for all (dist/message_group.h).
// Thread-safety: one thread, that which made the World.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "dist/traffic.h"

namespace vfm::dist {

/// Between this rank of a group and another, `peer`; one of its two ends. Not empty.
struct Message {
  bool sends = false;
  int peer = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  bool payload = true;  ///< counted as traffic
};

/// Messages under way.
class Flight {
 public:
  /// Nobody reads or writes what has not landed yet, if the wire can see to that.
  virtual ~Flight() = default;
  /// Whether all have arrived, and what was sent may be changed. Throws Error for a message of
  /// another size.
  virtual bool landed() = 0;
  /// The ranks of the group whose end of a message is missing.
  virtual std::vector<int> awaited() = 0;
};

/// The messages of one rank of one group. Messages of one tag between two ranks arrive in the
/// order in which they are sent, and are not buffered: a send lands when it is received.
class Wire {
 public:
  static constexpr int kTags = 32768;  ///< MPI promises as many
  virtual ~Wire() = default;
  /// The group's collective `number` begins: to compare what the ranks call, where that is cheap.
  virtual void begin(std::int64_t, const std::string&) {}
  /// `place` for errors.
  virtual std::unique_ptr<Flight> post(int tag, const std::string& place,
                                       const std::vector<Message>& messages) = 0;
};

/// One operation, as rounds of messages.
class Running {
 public:
  /// Is called when a round has landed, and at first; fills the messages of the next round. False:
  /// there is none, it is finished.
  using Next = std::function<bool(std::vector<Message>&)>;
  struct What {
    std::string axis;
    Operation operation = Operation::barrier;
    std::string place;  ///< "all_gather 3 of 'tp'": where its rank waits
    std::vector<int> ranks;
    int tag = 0;
  };
  Running(What what, Wire* wire, Traffic& traffic, Next next)
      : what_(std::move(what)), wire_(wire), traffic_(traffic), next_(std::move(next)) {}

  /// Goes on as far as it can without waiting.
  void advance();
  bool finished() const { return finished_; }
  const What& what() const { return what_; }
  /// Ranks of the world.
  std::vector<int> awaited() const;

 private:
  const What what_;
  Wire* const wire_;
  Traffic& traffic_;
  Next next_;
  std::unique_ptr<Flight> flight_;
  bool finished_ = false;
};

/// The operations of all groups of one rank: while it waits for one of them, all go on.
class Engine {
 public:
  explicit Engine(Traffic& traffic) : traffic_(traffic) {}
  virtual ~Engine() = default;

  void start(const std::shared_ptr<Running>& running);
  void finish(const Running& running);
  bool finished(const Running& running);
  /// The caller wants no more of an operation that is not finished.
  virtual void drop(const std::shared_ptr<Running>& running) = 0;
  /// Waits for all that were dropped.
  void finish_all();
  Traffic& traffic() { return traffic_; }

  /// How often the rank has waited for operations that are only counted.
  std::int64_t counted_waits = 0;

 protected:
  /// Returns when `done` does; calls it again whenever messages of this rank may have landed.
  /// Throws Error, or ends the run, when it cannot be.
  virtual void wait(const Running& running, const std::function<bool()>& done) = 0;
  void forget(const std::shared_ptr<Running>& running) { running_.remove(running); }

 private:
  void advance();
  void check_thread() const;
  Traffic& traffic_;
  std::list<std::shared_ptr<Running>> running_;
  const std::thread::id thread_ = std::this_thread::get_id();
};

}  // namespace vfm::dist

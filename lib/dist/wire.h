// Inside lib/dist only: what a backend of the host is, threads or MPI. It moves messages; what a
// collective is made of them is the same for all (dist/message_group.h).
// Thread-safety: one thread, that which made the World; messages move in another one where there is
// one for that (dist/mpi_engine.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
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

/// One operation, as rounds of messages. One thread has it go on; any may ask whether it is
/// finished.
class Running {
 public:
  /// Is called when a round has landed, and at first; fills the messages of the next round. False:
  /// there is none, it is finished. It touches the host's memory alone.
  using Next = std::function<bool(std::vector<Message>&)>;
  struct What {
    std::string axis;
    std::string place;  ///< "all_gather 3 of 'tp'": where its rank waits
    std::vector<int> ranks;
    int tag = 0;
  };
  Running(What what, Wire* wire, Next next)
      : what_(std::move(what)), wire_(wire), next_(std::move(next)) {}

  /// Goes on as far as it can without waiting.
  void advance();
  /// It has no tensors then.
  bool finished() const { return finished_; }
  const What& what() const { return what_; }
  /// Ranks of the world.
  std::vector<int> awaited() const;

 private:
  const What what_;
  Wire* const wire_;
  Next next_;
  std::unique_ptr<Flight> flight_;
  std::atomic<bool> finished_{false};
};

/// Operations of one rank that go on together. Thread-safety: one thread.
class UnderWay {
 public:
  /// Begins it, and keeps it until it is finished.
  void start(const std::shared_ptr<Running>& running);
  void advance();
  void forget(const std::shared_ptr<Running>& running) { running_.remove(running); }
  bool empty() const { return running_.empty(); }
  std::shared_ptr<Running> first() const { return running_.front(); }

 private:
  std::list<std::shared_ptr<Running>> running_;
};

/// The operations of all groups of one rank: while it waits for one of them, all go on.
class Engine {
 public:
  explicit Engine(Traffic& traffic) : traffic_(traffic) {}
  virtual ~Engine() = default;

  virtual void start(const std::shared_ptr<Running>& running) = 0;
  virtual void finish(const Running& running) = 0;
  virtual bool finished(const Running& running) = 0;
  /// The caller wants no more of an operation that is not finished.
  virtual void drop(const std::shared_ptr<Running>& running) = 0;
  Traffic& traffic() { return traffic_; }

  /// How often the rank has waited for operations that are only counted.
  std::int64_t counted_waits = 0;

 protected:
  void check_thread() const;

 private:
  Traffic& traffic_;
  const std::thread::id thread_ = std::this_thread::get_id();
};

/// Of a rank whose operations go on when it calls, and not in between.
class CallingEngine : public Engine {
 public:
  using Engine::Engine;
  void start(const std::shared_ptr<Running>& running) override;
  void finish(const Running& running) override;
  bool finished(const Running& running) override;

 protected:
  /// Returns when `done` does; calls it again whenever messages of this rank may have landed.
  /// Throws Error when it cannot be.
  virtual void wait(const Running& running, const std::function<bool()>& done) = 0;
  void forget(const std::shared_ptr<Running>& running) { under_way_.forget(running); }

 private:
  UnderWay under_way_;
};

}  // namespace vfm::dist

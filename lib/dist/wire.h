// Inside lib/dist only: the interface of a host backend, threads or MPI. A backend moves messages;
// how collectives are made of messages is the same for all backends (dist/message_group.h).
// Thread-safety: the thread that made the World. With MPI another thread moves the messages
// (dist/mpi_engine.h).
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

#include "dist/flight_recorder.h"
#include "dist/traffic.h"

namespace vfm::dist {

/// One end of a message between this rank of a group and the rank `peer`. Never empty.
struct Message {
  bool sends = false;
  int peer = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

/// Messages in progress.
class Flight {
 public:
  /// Stops messages that have not landed from using their memory, if the wire can.
  virtual ~Flight() = default;
  /// Returns whether all messages have arrived, so that the memory of sends may be changed. Throws
  /// Error for a message of another size.
  virtual bool landed() = 0;
  /// Ranks of the group whose end of a message is missing.
  virtual std::vector<int> awaited() = 0;
};

/// The messages of one rank of one group. Messages with one tag between two ranks arrive in the
/// order in which they are sent. They are not buffered: a send lands when it is received.
class Wire {
 public:
  static constexpr int kTags = 32768;  ///< the number of tags that MPI guarantees
  virtual ~Wire() = default;
  /// Collective `number` of the group begins. The wire may compare what the ranks call.
  virtual void begin(std::int64_t, const std::string&) {}
  /// `place` is for error messages.
  virtual std::unique_ptr<Flight> post(int tag, const std::string& place,
                                       const std::vector<Message>& messages) = 0;
};

/// One operation, as rounds of messages. One thread advances it; any thread may ask whether it is
/// finished.
class Running {
 public:
  /// Called first and each time a round has landed. Fills in the messages of the next round, or
  /// returns false if the operation is finished. It touches only the host's memory.
  using Next = std::function<bool(std::vector<Message>&)>;
  struct What {
    std::string axis;
    std::string place;  ///< "all_gather 3 of 'tp'": where this rank waits
    std::vector<int> ranks;
    int tag = 0;
  };
  Running(What what, Wire* wire, Next next)
      : what_(std::move(what)), wire_(wire), next_(std::move(next)) {}

  /// Advances as far as possible without waiting.
  void advance();
  /// A finished operation holds no tensors.
  bool finished() const { return finished_; }
  const What& what() const { return what_; }
  /// Ranks of the world that this rank waits for.
  std::vector<int> awaited() const;

 private:
  const What what_;
  Wire* const wire_;
  Next next_;
  std::unique_ptr<Flight> flight_;
  std::atomic<bool> finished_{false};
};

/// Operations of one rank that are in progress together. Thread-safety: one thread.
class UnderWay {
 public:
  /// Starts the operation, and keeps it until it is finished.
  void start(const std::shared_ptr<Running>& running);
  void advance();
  void forget(const std::shared_ptr<Running>& running) { running_.remove(running); }
  bool empty() const { return running_.empty(); }
  std::shared_ptr<Running> first() const { return running_.front(); }

 private:
  std::list<std::shared_ptr<Running>> running_;
};

/// The operations of all groups of one rank. While the rank waits for one, all make progress.
class Engine {
 public:
  Engine(Traffic& traffic, FlightRecorder& recorder) : traffic_(traffic), recorder_(recorder) {}
  virtual ~Engine() = default;

  virtual void start(const std::shared_ptr<Running>& running) = 0;
  virtual void finish(const Running& running) = 0;
  virtual bool finished(const Running& running) = 0;
  /// Says that the caller no longer needs an unfinished operation.
  virtual void drop(const std::shared_ptr<Running>& running) = 0;
  Traffic& traffic() { return traffic_; }
  FlightRecorder& recorder() { return recorder_; }

  /// How often the rank has waited for operations on Device::meta, which are only counted.
  std::int64_t counted_waits = 0;

 protected:
  void check_thread() const;

 private:
  Traffic& traffic_;
  FlightRecorder& recorder_;
  const std::thread::id thread_ = std::this_thread::get_id();
};

/// An engine whose operations make progress only while the rank calls it.
class CallingEngine : public Engine {
 public:
  using Engine::Engine;
  void start(const std::shared_ptr<Running>& running) override;
  void finish(const Running& running) override;
  bool finished(const Running& running) override;

 protected:
  /// Returns when `done` returns true. Calls it again whenever messages of this rank may have
  /// landed. Throws Error if `done` can never become true.
  virtual void wait(const Running& running, const std::function<bool()>& done) = 0;
  void forget(const std::shared_ptr<Running>& running) { under_way_.forget(running); }

 private:
  UnderWay under_way_;
};

}  // namespace vfm::dist

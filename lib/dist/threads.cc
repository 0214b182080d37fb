// SPDX-License-Identifier: Apache-2.0
#include "dist/threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "dist/message_group.h"
#include "dist/thread_hall.h"

namespace vfm::dist {
namespace {

class ThreadFlight final : public Flight {
 public:
  ThreadFlight(ThreadHall& hall, std::size_t count) : hall_(hall) { ends_.reserve(count); }
  ~ThreadFlight() override {
    for (ThreadHall::End& end : ends_)
      hall_.withdraw(end);
  }
  void post(ThreadHall::End end, int peer) {
    peers_.push_back(peer);
    ends_.push_back(std::move(end));
    hall_.post(ends_.back());
  }
  bool landed() override {
    for (const ThreadHall::End& end : ends_)
      if (!hall_.landed(end)) return false;
    return true;
  }
  std::vector<int> awaited() override {
    std::vector<int> peers;
    for (std::size_t i = 0; i < ends_.size(); ++i)
      if (!hall_.landed(ends_[i]) &&
          std::find(peers.begin(), peers.end(), peers_[i]) == peers.end())
        peers.push_back(peers_[i]);
    return peers;
  }

 private:
  ThreadHall& hall_;
  std::vector<ThreadHall::End> ends_;  // stay where they are
  std::vector<int> peers_;
};

class ThreadWire final : public Wire {
 public:
  ThreadWire(ThreadHall& hall, std::string group, std::string axis, int rank,
             std::vector<int> ranks)
      : hall_(hall),
        group_(std::move(group)),
        axis_(std::move(axis)),
        rank_(rank),
        ranks_(std::move(ranks)) {}

  void begin(std::int64_t number, const std::string& what) override {
    hall_.compare(group_, axis_, number, rank_, ranks_.size(), what);
  }
  std::unique_ptr<Flight> post(int tag, const std::string& place,
                               const std::vector<Message>& messages) override {
    auto flight = std::make_unique<ThreadFlight>(hall_, messages.size());
    for (const Message& message : messages) {
      const int peer = ranks_[static_cast<std::size_t>(message.peer)];
      const auto [from, to] = message.sends ? std::pair(rank_, peer) : std::pair(peer, rank_);
      flight->post({group_, place, from, to, tag, message.sends, message.data, message.bytes},
                   message.peer);
    }
    return flight;
  }

 private:
  ThreadHall& hall_;
  const std::string group_, axis_;
  const int rank_;
  const std::vector<int> ranks_;
};

class ThreadEngine final : public CallingEngine {
 public:
  ThreadEngine(Traffic& traffic, FlightRecorder& recorder, ThreadHall& hall, int rank)
      : CallingEngine(traffic, recorder), hall_(hall), rank_(rank) {}
  /// The caller's memory may be gone at once, so the others must not reach for it any more.
  void drop(const std::shared_ptr<Running>& running) override {
    hall_.fail_all(rank_, "it left " + running->what().place + " unfinished");
    forget(running);
  }

 protected:
  void wait(const Running& running, const std::function<bool()>& done) override {
    hall_.wait(rank_, running, done);
  }

 private:
  ThreadHall& hall_;
  const int rank_;
};

class ThreadWorld final : public World {
 public:
  ThreadWorld(ThreadHall& hall, int rank, int size) : hall_(hall), rank_(rank), size_(size) {
    recorder().name(rank, fmt::format("thread {}", rank));
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    all_ = group("world", std::move(ranks));
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override { return fmt::format("thread {}", rank_); }

  std::unique_ptr<Group> group(std::string_view axis, std::vector<int> ranks) override {
    const int place = place_in(ranks, rank_, size_, axis);
    // The groups that are made at once: all ranks agree on the axis, those of one on its ranks.
    hall_.compare("groups", "groups", ++groups_, rank_, static_cast<std::size_t>(size_),
                  std::string(axis));
    std::string name = fmt::format("{} {} of rank {}", axis, groups_, ranks.front());
    hall_.compare(name, std::string(axis), 0, rank_, ranks.size(),
                  fmt::format("ranks [{}]", fmt::join(ranks, " ")));
    auto wire =
        std::make_unique<ThreadWire>(hall_, std::move(name), std::string(axis), rank_, ranks);
    auto group = std::make_unique<MessageGroup>(std::string(axis), place, std::move(ranks),
                                                std::move(wire), engine_);
    equip(*group);
    return group;
  }

  void use_device(Device device, bool ordered) override {
    World::use_device(device, ordered);
    std::vector<int> ranks = all_->ranks();
    all_ = group("world", std::move(ranks));
  }

  Group& all() override { return *all_; }
  void all_reduce_sum(std::span<float> values) override { all_->all_reduce(values).wait(); }
  void all_reduce_sum(std::span<double> values) override { all_->all_reduce(values).wait(); }
  void broadcast(std::span<std::byte> bytes) override { all_->broadcast(lend(bytes), 0).wait(); }
  std::vector<std::string> gather(const std::string& text) override { return all_->gather(text); }
  void barrier() override { all_->barrier(); }
  [[noreturn]] void end_all(int status) override {
    fail("rank {} ends all ranks with status {}", rank_, status);
  }

 private:
  ThreadHall& hall_;
  const int rank_, size_;
  ThreadEngine engine_{traffic(), recorder(), hall_, rank_};
  std::int64_t groups_ = 0;
  std::unique_ptr<Group> all_;
};

/// What it throws, unless that is because of another rank.
std::exception_ptr run_rank(ThreadHall& hall, int rank, int size,
                            const std::function<void(World&)>& run) {
  try {
    ThreadWorld world(hall, rank, size);
    run(world);
    hall.leave(rank);
    return nullptr;
  } catch (const OtherRankFailed&) {
    return nullptr;
  } catch (const std::exception& error) {
    hall.fail_all(rank, error.what());
    return std::current_exception();
  } catch (...) {
    hall.fail_all(rank, "stopped");
    return std::current_exception();
  }
}

}  // namespace

void thread_worlds(int size, const std::function<void(World&)>& rank) {
  ThreadHall hall(size);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < size; ++r)
      threads.emplace_back(
          [&, r] { errors[static_cast<std::size_t>(r)] = run_rank(hall, r, size, rank); });
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  hall.check_all();  // of a rank that left a transfer unfinished, or waited for ever
}

}  // namespace vfm::dist

// SPDX-License-Identifier: Apache-2.0
#include "dist/mpi_meeting.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <exception>

#include "base/log.h"

namespace vfm::dist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBusyTurns = 200;       // looks before the first sleep: most ranks come at once
constexpr double kAnswerSeconds = 5;  // that those who wait have to say so
constexpr std::size_t kNameLength = 256;

/// Seconds since `last`, which moves on. A process that was stopped for an hour has waited for a
/// second, as far as it can know.
double tick(Clock::time_point& last) {
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - last).count();
  last = now;
  return std::min(seconds, 1.0);
}

std::vector<std::string> hosts_of(const std::string& host, int size) {
  std::string mine = host.substr(0, kNameLength - 1);
  mine.resize(kNameLength);
  std::string all(kNameLength * static_cast<std::size_t>(size), '\0');
  MPI_Allgather(mine.data(), kNameLength, MPI_CHAR, all.data(), kNameLength, MPI_CHAR,
                MPI_COMM_WORLD);
  std::vector<std::string> hosts;
  for (std::size_t at = 0; at < all.size(); at += kNameLength)
    hosts.emplace_back(all.c_str() + at);
  return hosts;
}

}  // namespace

struct Meeting::Channel {
  MPI_Comm comm = MPI_COMM_NULL;
};

Meeting::Meeting(int rank, int size, const std::string& host)
    : rank_(rank),
      size_(size),
      hosts_(hosts_of(host, size)),
      channel_(std::make_unique<Channel>()),
      here_(hosts_.size(), -2) {
  // Of its own, so that nothing here is taken for a message of the run's.
  MPI_Comm_dup(MPI_COMM_WORLD, &channel_->comm);
  watcher_ = std::thread([this] { watch(); });
}

Meeting::~Meeting() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  watcher_.join();
}

void Meeting::section(std::string_view what, double limit) {
  const std::lock_guard lock(mutex_);
  what_ = what;
  limit_ = limit;
}

void Meeting::come(const char* operation) {
  {
    const std::lock_guard lock(mutex_);
    before_ = operation_;
    operation_ = operation;
    ++number_;
  }
  if (limit_ <= 0) return;
  said_so_ = false;
  MPI_Request all_here;
  MPI_Ibarrier(channel_->comm, &all_here);
  auto last = Clock::now();
  double waited = 0, answers = 0;
  for (int turn = 0;; ++turn) {
    int done = 0;
    MPI_Test(&all_here, &done, MPI_STATUS_IGNORE);
    if (done) return;
    if (turn < kBusyTurns) continue;
    std::this_thread::sleep_for(std::chrono::microseconds(waited < 0.01 ? 50 : 1000));
    const double passed = tick(last);
    waited += passed;
    if (turn % 64 == 0) listen();
    if (waited <= limit_) continue;
    say();
    answers += passed;
    if (answers > kAnswerSeconds) give_up();
  }
}

/// Takes messages of other ranks. A rank that learns that one waits too long says where it is, too.
void Meeting::listen() {
  for (;;) {
    int there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, channel_->comm, &there, &status);
    if (!there) return;
    std::int64_t number = 0;
    MPI_Recv(&number, 1, MPI_INT64_T, status.MPI_SOURCE, 0, channel_->comm, MPI_STATUS_IGNORE);
    here_[static_cast<std::size_t>(status.MPI_SOURCE)] = number;
    if (waits_here(status.MPI_SOURCE)) say();  // else it is old, of a rank that came late
  }
}

/// Where a rank stops in the middle of meeting, some of the others may already be one further.
bool Meeting::waits_here(int rank) const {
  return std::abs(here_[static_cast<std::size_t>(rank)] - number_) <= 1;
}

void Meeting::say() {
  if (said_so_) return;
  said_so_ = true;
  said_.push_back(number_);
  for (int to = 0; to < size_; ++to) {
    if (to == rank_) continue;
    MPI_Request sent;
    MPI_Isend(&said_.back(), 1, MPI_INT64_T, to, 0, channel_->comm, &sent);
    MPI_Request_free(&sent);
  }
}

std::string Meeting::place() const {
  return fmt::format("{} (collective {}, during {})", operation_, number_.load(), what_);
}

void Meeting::give_up() {
  here_[static_cast<std::size_t>(rank_)] = number_;
  int first = 0;
  while (!waits_here(first))
    ++first;
  // One rank reports; the others give it the time to, and then end the run without it.
  if (first != rank_) std::this_thread::sleep_for(std::chrono::seconds(10));
  std::string missing;
  for (int rank = 0; rank < size_; ++rank)
    if (!waits_here(rank))
      missing += fmt::format("{}rank {} on host {}", missing.empty() ? "" : ", ", rank,
                             hosts_[static_cast<std::size_t>(rank)]);
  log_error(
      "{} did not come to {} within {:g} s ('train.{}_limit'), after {}: stopped, lost, or too "
      "slow; all ranks end, and the same command continues from the newest checkpoint",
      missing.empty() ? "no rank is missing, but they" : missing, place(), limit_.load(), what_,
      before_);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::terminate();  // MPI_Abort does not return
}

/// Where a rank is lost in the middle of a collective, MPI does not say which it is, and the thread
/// that called it waits for ever. So this one, which computes nothing, ends the run.
void Meeting::watch() {
  std::unique_lock lock(mutex_);
  std::int64_t number = 0;
  double inside = 0;
  auto last = Clock::now();
  while (!ended_.wait_for(lock, std::chrono::milliseconds(500), [this] { return end_; })) {
    const double passed = tick(last);
    inside = inside_ && number == number_ ? inside + passed : 0;
    number = number_;
    if (limit_ <= 0 || inside <= limit_ + kAnswerSeconds) continue;
    log_error(
        "rank {} on host {} has waited {:g} s within {}: another rank was lost in it, and MPI does "
        "not report which; all ranks end, and the same command continues from the newest "
        "checkpoint",
        rank_, hosts_[static_cast<std::size_t>(rank_)], limit_.load(), place());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

}  // namespace vfm::dist

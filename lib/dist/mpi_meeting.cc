// SPDX-License-Identifier: Apache-2.0
#include "dist/mpi_meeting.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <sstream>

#include "base/log.h"

namespace vfm::dist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBusySeconds = 3e-4;  // of looking before the first sleep: most come at once
constexpr double kAnswerSeconds = 5;   // that those who wait have to say so
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
      heard_(hosts_.size()) {
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

std::string Meeting::name_of(int rank) const {
  return fmt::format("rank {} on host {}", rank, hosts_[static_cast<std::size_t>(rank)]);
}

void Meeting::come(const char* operation) {
  MPI_Request all_here = MPI_REQUEST_NULL;
  if (limit_ > 0) MPI_Ibarrier(channel_->comm, &all_here);
  until(
      fmt::format("{} ({} of all ranks)", operation, ++collectives_),
      [&] {
        int done = 0;
        MPI_Test(&all_here, &done, MPI_STATUS_IGNORE);
        return done != 0;
      },
      nullptr);
}

void Meeting::until(const std::string& place, const std::function<bool()>& done,
                    const std::function<std::vector<int>()>& awaited) {
  {
    const std::lock_guard lock(mutex_);
    before_ = std::move(operation_);
    operation_ = place;
    ++number_;
  }
  const auto turned = [&] {
    if (meanwhile_) meanwhile_();
    return done();
  };
  auto last = Clock::now();
  double waited = 0, answers = 0;
  for (int turn = 0; !turned(); ++turn) {
    if (waited < kBusySeconds)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(waited < 0.01 ? 50 : 1000));
    const double passed = tick(last);
    waited += passed;
    if (turn % 64 == 0) listen(awaited);
    if (limit_ <= 0 || waited <= limit_) continue;
    say(true, awaited);
    answers += passed;
    if (answers > kAnswerSeconds) give_up();
  }
  if (!said_) return;
  said_.reset();
  send("");  // it waits no more
}

/// Takes messages of other ranks. A rank that learns that one waits too long says where it is, too.
void Meeting::listen(const std::function<std::vector<int>()>& awaited) {
  for (;;) {
    int there = 0, length = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, channel_->comm, &there, &status);
    if (!there) return;
    MPI_Get_count(&status, MPI_CHAR, &length);
    std::string letter(static_cast<std::size_t>(length), '\0');
    MPI_Recv(letter.data(), length, MPI_CHAR, status.MPI_SOURCE, 0, channel_->comm,
             MPI_STATUS_IGNORE);
    std::optional<Waits>& heard = heard_[static_cast<std::size_t>(status.MPI_SOURCE)];
    heard.reset();
    if (letter.empty()) continue;
    std::istringstream words(letter);
    int count = 0;
    heard.emplace();
    words >> heard->too_long >> count;
    if (count >= 0) heard->awaited.emplace(static_cast<std::size_t>(count));
    if (heard->awaited)
      for (int& rank : *heard->awaited)
        words >> rank;
    std::getline(words >> std::ws, heard->place);
    if (heard->too_long) say(false, awaited);
  }
}

/// A message to all others: 'too long?' 'number of ranks it waits for, -1: all' 'these' 'place'.
void Meeting::say(bool too_long, const std::function<std::vector<int>()>& awaited) {
  if (said_ && said_->too_long >= too_long) return;
  said_.emplace();
  said_->too_long = too_long;
  said_->place = place();
  std::string letter = fmt::format("{:d} ", too_long);
  if (awaited) {
    said_->awaited = awaited();
    letter += std::to_string(said_->awaited->size());
    for (const int rank : *said_->awaited)
      letter += fmt::format(" {}", rank);
  } else {
    letter += "-1";
  }
  send(letter + " " + said_->place);
}

void Meeting::send(std::string message) {
  const std::string& letter = letters_.emplace_back(std::move(message));
  for (int to = 0; to < size_; ++to) {
    if (to == rank_) continue;
    MPI_Request sent;
    MPI_Isend(letter.data(), static_cast<int>(letter.size()), MPI_CHAR, to, 0, channel_->comm,
              &sent);
    MPI_Request_free(&sent);
  }
}

std::string Meeting::place() const {
  return fmt::format("{} during {}, after {}", operation_, what_, before_);
}

/// The ranks that say nothing among those for which this one waits, itself or by way of others; and
/// `where` the first of them should be.
std::string Meeting::missing(std::string& where) const {
  std::vector<bool> silent(heard_.size()), seen(heard_.size());
  std::vector<int> next = {rank_};
  seen[static_cast<std::size_t>(rank_)] = true;
  const auto follow = [&](int rank, const std::string& waits_in) {
    const auto i = static_cast<std::size_t>(rank);
    if (seen[i]) return;
    seen[i] = true;
    if (heard_[i]) return next.push_back(rank);
    if (where.empty()) where = waits_in;
    silent[i] = true;
  };
  for (std::size_t at = 0; at < next.size(); ++at) {
    const int rank = next[at];
    const Waits& waits = *(rank == rank_ ? said_ : heard_[static_cast<std::size_t>(rank)]);
    if (waits.awaited)
      for (const int other : *waits.awaited)
        follow(other, waits.place);
    else
      for (int other = 0; other < size_; ++other)
        follow(other, waits.place);
  }
  std::string text;
  for (int rank = 0; rank < size_; ++rank)
    if (silent[static_cast<std::size_t>(rank)]) text += (text.empty() ? "" : ", ") + name_of(rank);
  return text;
}

/// All that wait, and for whom.
std::string Meeting::circle() const {
  std::string text;
  for (int rank = 0; rank < size_; ++rank) {
    const std::optional<Waits>& waits =
        rank == rank_ ? said_ : heard_[static_cast<std::size_t>(rank)];
    if (!waits) continue;
    text += fmt::format("{}{} in {} for", text.empty() ? "" : "; ", name_of(rank), waits->place);
    if (waits->awaited)
      for (const int other : *waits->awaited)
        text += fmt::format(" {}", other);
    else
      text += " all";
  }
  return text;
}

void Meeting::give_up() {
  const bool first = std::none_of(heard_.begin(), heard_.begin() + rank_,
                                  [](const auto& waits) { return waits && waits->too_long; });
  // One rank reports; the others give it the time to, and then end the run without it.
  if (!first) std::this_thread::sleep_for(std::chrono::seconds(10));
  std::string where;
  const std::string ranks = missing(where);
  if (ranks.empty())
    log_error(
        "no rank is missing, but they wait for each other longer than {:g} s ('train.{}_limit'): "
        "{}; all ranks end, and the same command continues from the newest checkpoint",
        limit_.load(), what_, circle());
  else
    log_error(
        "{} did not come to {}, within {:g} s ('train.{}_limit'): stopped, lost, or too slow; all "
        "ranks end, and the same command continues from the newest checkpoint",
        ranks, where, limit_.load(), what_);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::terminate();  // MPI_Abort does not return
}

/// Where a rank is lost in the middle of a collective, MPI does not say which it is, and the thread
/// that calls it waits for ever. So this one, which computes nothing, ends the run.
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

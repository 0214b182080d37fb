// SPDX-License-Identifier: Apache-2.0
#include "dist/mpi_meeting.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include "base/log.h"
#include "dist/pulse.h"
#include "dist/ran_time.h"
#include "dist/rank_words.h"
#include "dist/section_times.h"

namespace vfm::dist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBusySeconds = 3e-4;  // of looking before the first sleep: most come at once
constexpr double kAnswerSeconds = 2;   // of a limit: that those who wait have to say so
constexpr double kPause = 1e-3;        // between two looks of a long wait
constexpr double kWatchPause = 0.5;    // between two looks of the watching thread

/// Seconds since `last`, which moves on, without those in which this process was stopped. `pause`
/// is how long the caller sleeps between two calls.
double tick(Clock::time_point& last, double pause) {
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - last).count();
  last = now;
  return seconds_ran(seconds, pause);
}

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// The flight recorder's rank waits as long as one lives.
class Waiting {
 public:
  explicit Waiting(FlightRecorder& recorder) : recorder_(recorder) { recorder_.waits(true); }
  ~Waiting() { recorder_.waits(false); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  FlightRecorder& recorder_;
};

}  // namespace

struct Meeting::Channel {
  MPI_Comm comm = MPI_COMM_NULL;
};

Meeting::Meeting(int rank, std::vector<std::string> hosts, FlightRecorder& recorder)
    : rank_(rank),
      size_(static_cast<int>(hosts.size())),
      recorder_(recorder),
      recorded_as_(recorder.add_group("all ranks", all_ranks(size_))),
      hosts_(std::move(hosts)),
      channel_(std::make_unique<Channel>()),
      heard_(hosts_.size()) {
  // Of its own, so that nothing here is taken for a message of the run's.
  MPI_Comm_dup(MPI_COMM_WORLD, &channel_->comm);
  recorder_.waits(false);
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

void Meeting::section(std::string_view what, const Section& section) {
  const std::lock_guard lock(mutex_);
  what_ = what;
  limit_ = section.limit.load();
  learnt_ = section.learnt;
}

void Meeting::give_up_by(GiveUp give_up) {
  const std::lock_guard lock(mutex_);
  give_up_ = std::move(give_up);
}

std::string Meeting::name_of(int rank) const {
  return fmt::format("rank {} on host {}", rank, hosts_[static_cast<std::size_t>(rank)]);
}

FlightRecorder::Ticket Meeting::come(const std::string& operation) {
  const FlightRecorder::Ticket ticket = recorder_.begin(recorded_as_, ++collectives_, operation);
  MPI_Request all_here = MPI_REQUEST_NULL;
  if (limit_ > 0) MPI_Ibarrier(channel_->comm, &all_here);
  until(
      fmt::format("{} ({} of all ranks)", operation, collectives_),
      [&] {
        int done = 0;
        MPI_Test(&all_here, &done, MPI_STATUS_IGNORE);
        return done != 0;
      },
      nullptr);
  return ticket;
}

void Meeting::until(const std::string& place, const std::function<bool()>& done,
                    const std::function<std::vector<int>()>& awaited) {
  {
    const std::lock_guard lock(mutex_);
    before_ = std::move(operation_);
    operation_ = place;
    ++number_;
  }
  const Waiting waiting(recorder_);
  const auto turned = [&] {
    if (meanwhile_) meanwhile_();
    return done();
  };
  auto last = Clock::now();
  double waited = 0;
  for (int turn = 0; !turned(); ++turn) {
    if (waited < kBusySeconds)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::duration<double>(waited < 0.01 ? 5e-5 : kPause));
    waited += tick(last, kPause);
    if (turn % 64 == 0) listen(awaited);
    const double limit = limit_;
    if (limit <= 0 || waited <= limit - std::min(kAnswerSeconds, limit / 2)) continue;
    say(true, awaited);
    if (waited > limit) give_up();
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
std::vector<int> Meeting::missing(std::string& where) const {
  std::vector<int> silent;
  std::vector<bool> seen(heard_.size());
  std::vector<int> next = {rank_};
  seen[static_cast<std::size_t>(rank_)] = true;
  const auto follow = [&](int rank, const std::string& waits_in) {
    const auto i = static_cast<std::size_t>(rank);
    if (seen[i]) return;
    seen[i] = true;
    if (heard_[i]) return next.push_back(rank);
    if (where.empty()) where = waits_in;
    silent.push_back(rank);
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
  std::sort(silent.begin(), silent.end());
  return silent;
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

/// "within 10 s (three times the usual 'step', at least 'train.silent_limit')".
std::string Meeting::limit_words() const {
  return fmt::format(
      "within {:.3g} s ({})", limit_.load(),
      learnt_ ? fmt::format("three times the usual '{}', at least {}'train.silent_limit'", what_,
                            what_ == SectionTimes::kBeside ? "three times " : "")
              : fmt::format("'train.{}_limit'",
                            what_ == "setup" || what_ == "checkpoint" ? what_ : "step"));
}

void Meeting::give_up() {
  const bool first = std::none_of(heard_.begin(), heard_.begin() + rank_,
                                  [](const auto& waits) { return waits && waits->too_long; });
  // One rank reports; the others give it the time to, and then end the run without it.
  if (!first) std::this_thread::sleep_for(std::chrono::seconds(10));
  std::string where;
  std::vector<int> ranks = missing(where);
  std::unique_lock lock(mutex_);
  const std::string within = limit_words();
  lock.unlock();
  if (ranks.empty())
    end_run(fmt::format("no rank is missing, but they wait for each other longer than {}: {}",
                        within.substr(std::string_view("within ").size()), circle()),
            {});
  std::string names;
  constexpr std::size_t kMost = 8;
  for (std::size_t i = 0; i < ranks.size() && i < kMost; ++i)
    names += (i == 0 ? "" : ", ") + name_of(ranks[i]);
  if (ranks.size() > kMost) names += fmt::format(" and others (all: {})", rank_words(ranks));
  end_run(fmt::format("{} did not come to {}, {}: stuck, stopped, lost, or too slow", names, where,
                      within),
          std::move(ranks));
}

void Meeting::end_run(std::string message, std::vector<int> ranks) {
  std::unique_lock lock(mutex_);
  const GiveUp give_up = give_up_;
  lock.unlock();
  if (give_up) give_up(message, std::move(ranks));
  log_error("{}", message);
  std::_Exit(kLostStatus);
}

/// Where a rank is lost in the middle of a collective, MPI does not say which it is, and the thread
/// that calls it waits for ever. So this one, which computes nothing, ends the run.
void Meeting::watch() {
  std::unique_lock lock(mutex_);
  std::int64_t number = 0;
  double inside = 0;
  auto last = Clock::now();
  while (
      !ended_.wait_for(lock, std::chrono::duration<double>(kWatchPause), [this] { return end_; })) {
    const double passed = tick(last, kWatchPause);
    inside = inside_ && number == number_ ? inside + passed : 0;
    number = number_;
    if (limit_ <= 0 || inside <= limit_ + kAnswerSeconds) continue;
    std::string message = fmt::format(
        "rank {} on host {} has waited {:.3g} s within {}: another rank was lost in it, and MPI "
        "does not report which",
        rank_, hosts_[static_cast<std::size_t>(rank_)], inside, place());
    lock.unlock();
    end_run(std::move(message), {});
  }
}

}  // namespace vfm::dist

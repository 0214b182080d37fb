// SPDX-License-Identifier: Apache-2.0
#include "dist/pulse_thread.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <utility>

#include "base/disk_errors.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "dist/ran_time.h"
#include "dist/rank_words.h"
#include "io/atomic_file.h"
#include "io/file.h"

namespace vfm::dist {
namespace {

constexpr double kLimit = 10;
constexpr double kTelling = 2;  // of a limit: for the message and the end
constexpr double kLeast = 3;    // of silence, since a beat a second may be late
constexpr double kLinger = 2;   // an end that is found before the connections stand waits for them

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double silence_of(double limit) {
  return limit <= 0 ? 0 : std::max(kLeast, limit - kTelling);
}

[[noreturn]] void sleep_for_ever() {
  for (;;)
    std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

PulseThread::PulseThread(PulsePlan plan, FlightRecorder& recorder)
    : plan_(std::move(plan)),
      recorder_(recorder),
      pulse_(plan_.rank, plan_.ranks, [&recorder] { return recorder.beat(); }),
      dial_(plan_.rank, plan_.token, plan_.dial_seconds,
            [this](int rank, int fd, const std::string& address) {
              pulse_.connect(rank, fd, steady_seconds());
              say_connected(rank, address);
            }),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      silence_(silence_of(kLimit)) {
  recorder_.start(hash_hex({plan_.token.data(), plan_.token.size()}).substr(0, 16));
  begin();
  thread_ = std::thread([this] { run(); });
}

PulseThread::~PulseThread() {
  leave("");
  ::close(wake_);
}

void PulseThread::begin() {
  dial_.await(plan_.listener, pulse_.children());  // who has no children closes the listener
  const int parent = pulse_.parent();
  if (parent < 0) return;
  const auto at = static_cast<std::size_t>(plan_.rank);
  const bool here = plan_.ranks[at].first == parent;
  dial_.call(parent, here ? std::vector<std::string>{"127.0.0.1"} : plan_.addresses,
             plan_.ports[static_cast<std::size_t>(parent)]);
}

void PulseThread::limit(double seconds) {
  silence_ = silence_of(seconds);
}

void PulseThread::record_to(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  folder_ = folder;
}

void PulseThread::give_up(PulseEnd end) {
  {
    const std::lock_guard lock(mutex_);
    if (left_) std::_Exit(end.status);
    if (!reported_) reported_ = std::move(end);
  }
  ::eventfd_write(wake_, 1);
  sleep_for_ever();
}

void PulseThread::leave(const std::string& why) {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    leaves_ = why;
  }
  ::eventfd_write(wake_, 1);
  thread_.join();
}

void PulseThread::wait_for_end(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  if (ends_) sleep_for_ever();
}

void PulseThread::say_connected(int rank, const std::string& address) const {
  if (plan_.rank == 0 && plan_.ranks[static_cast<std::size_t>(rank)].first != 0)
    log_info("{} beats over {}", pulse_.name_of(rank), address);
}

void PulseThread::say_missing() const {
  std::vector<int> ranks;
  for (const int rank : dial_.missing())
    if (rank != pulse_.parent()) ranks.push_back(rank);
  if (ranks.empty()) return;
  std::string addresses;
  for (const std::string& address : plan_.addresses)
    addresses += (addresses.empty() ? "" : ", ") + address;
  log_warning(
      "{} (the first: {}) made no connection within {:g} s to {}, which listens at port {} of {}: "
      "see to the interfaces of these hosts and the firewalls between them; the run goes on, but a "
      "rank that is lost there is found by the limits of sections alone ('train.step_limit')",
      rank_words(ranks), pulse_.name_of(ranks.front()), plan_.dial_seconds,
      pulse_.name_of(plan_.rank), plan_.listener.port, addresses);
}

void PulseThread::poll_all() {
  std::vector<pollfd> all = {{wake_, POLLIN, 0}};
  for (const int fd : pulse_.descriptors())
    all.push_back({fd, POLLIN, 0});
  if (!dialled_)
    for (const PulseDial::Wanted& one : dial_.descriptors())
      all.push_back({one.fd, static_cast<short>(one.write ? POLLOUT : POLLIN), 0});
  const double seconds = ends_ ? 0.02 : Pulse::kTurn;
  ::poll(all.data(), all.size(), static_cast<int>(seconds * 1000));
  eventfd_t woken = 0;
  ::eventfd_read(wake_, &woken);
}

void PulseThread::run() {
  ::pthread_setname_np(::pthread_self(), "pulse");
  double before = steady_seconds();
  std::optional<double> waits;  // since when an own end waits for connections
  for (;;) {
    poll_all();
    const double now = steady_seconds(), passed = seconds_ran(now - before, Pulse::kTurn);
    before = now;
    std::optional<PulseEnd> reported;
    {
      const std::lock_guard lock(mutex_);
      left_ = leaves_ && !ends_ && !reported_;
      reported = reported_;
    }
    if (left_) return say_goodbye();
    try {
      if (!dialled_) {
        dial_.turn(passed);
        dialled_ = dial_.done();
        if (dialled_) say_missing();
      }
      pulse_.limit(silence_);
      pulse_.turn(now);
      if (reported && !pulse_.end()) {
        if (!waits) waits = now;
        const bool way = pulse_.parent() < 0 || pulse_.connected(pulse_.parent());
        if (way || dialled_ || now - *waits > kLinger) pulse_.report(*reported, now);
      }
    } catch (const std::exception& error) {  // what came is not what a rank sends
      log_warning("the watch over ranks: {}", error.what());
    }
    if (pulse_.end() && !ends_) finish();
    if (ends_ && pulse_.may_go(beside_ == 0, now)) std::_Exit(pulse_.end()->status);
  }
}

void PulseThread::say_goodbye() {
  constexpr int kTurns = 100;  // of 10 ms
  pulse_.leave(*leaves_);
  for (int turn = 0; turn < kTurns && !pulse_.has_left(); ++turn)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

void PulseThread::finish() {
  ends_ = true;
  const PulseEnd& end = *pulse_.end();
  std::string folder;
  {
    const std::lock_guard lock(mutex_);
    folder = folder_;
  }
  if (end.tells)
    run_beside([words = end.message, folder] {
      log_error("{}{}", words,
                folder.empty() ? ""
                               : fmt::format("; 'vfm-train why {}' tells what each rank did",
                                             io::dir_name(folder)));
    });
  const bool was_silent = end.kind == "silent" && end.rank == plan_.rank;
  if (!folder.empty() && !was_silent)
    run_beside([this, folder, run = end.tells || plan_.rank == 0 ? of_run() : std::string()] {
      write_records(folder, run);
    });
}

/// In a thread that may hang.
void PulseThread::run_beside(std::function<void()> act) {
  ++beside_;
  std::thread([this, act = std::move(act)] {
    act();
    --beside_;
  }).detach();
}

/// run.json.
std::string PulseThread::of_run() const {
  Json run = parse_json(pulse_.end()->to_text(), "the end of the run");
  run["start"] = recorder_.start();
  run["time"] = std::chrono::duration_cast<std::chrono::milliseconds>(
                    std::chrono::system_clock::now().time_since_epoch())
                    .count() /
                1000.0;
  Json all = Json::array();
  for (std::size_t i = 0; i < plan_.ranks.size(); ++i) {
    const Pulse::Rank& rank = plan_.ranks[i];
    all.push_back({{"rank", i}, {"host", rank.host}, {"pid", rank.pid}});
    if (const std::string& beat = pulse_.beats()[i]; !beat.empty())
      all.back()["beat"] = parse_json(beat, "a beat");
  }
  run["all"] = std::move(all);
  return dump_json(run) + "\n";
}

/// Where a link is down, both of its ends tell people. What rank 0 knows stays in the file.
void PulseThread::write_of_run(const std::string& path, const std::string& run) const {
  const io::QuietWaits quiet(true);
  io::AtomicFile file = io::AtomicFile::await(path);
  if (plan_.rank != 0 && io::file_exists(path)) return;
  file.write(run);
  file.commit();
}

void PulseThread::write_records(const std::string& folder, const std::string& run) {
  const SurvivesFullDisk survives;  // which is told below
  try {
    io::make_directories(folder);
    if (!run.empty()) write_of_run(io::join_path(folder, "run.json"), run);
    io::write_file(io::join_path(folder, fmt::format("rank-{:05}.json", plan_.rank)),
                   recorder_.record());
  } catch (const std::exception& error) {
    log_warning("no flight record of rank {}: {}", plan_.rank, error.what());
  } catch (...) {  // a signal to stop
  }
}

}  // namespace vfm::dist

// SPDX-License-Identifier: Apache-2.0
#include "cli/estimate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/philox.h"
#include "base/rounding.h"
#include "base/units.h"
#include "cli/runner.h"
#include "io/atomic_file.h"
#include "io/file.h"

namespace vfm::cli {
namespace {

constexpr std::size_t kSampled = 16;
/// A node, and what part of its cores' rate work that shares one memory is judged to keep.
constexpr int kNodeCores = 32;
constexpr double kNodeFactor = 0.8;

/// What ends a work that has had its time.
struct Enough {};

/// Counts what is done of the sample, and for how long each video was worked on.
class SampleProgress : public Progress {
 public:
  explicit SampleProgress(bool of_samples) : of_samples_(of_samples) {}

  void start(std::string_view, std::uint64_t) override {
    const std::lock_guard lock(mutex_);
    begin_ = Clock::now();
  }
  void add(std::uint64_t done) override {
    const std::lock_guard lock(mutex_);
    if (!begin_) begin_ = Clock::now();
    done_ += static_cast<double>(done);
    elapsed_ = seconds(Clock::now() - *begin_);
    if (of_samples_ && elapsed_ > kEstimateSeconds) throw Enough{};
  }
  void part(const void* item, double done) override {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (!open_.empty()) busy_ += seconds(now - last_);
    last_ = now;
    if (done >= 0) {
      open_.try_emplace(item, Open{now, 0}).first->second.done = done;
      return;
    }
    const auto found = open_.find(item);
    if (found == open_.end()) return;
    const double took = seconds(now - found->second.begin);
    if (found->second.done > 0) {
      sum_ += took;
      whole_ += took / found->second.done;
    }
    open_.erase(found);
  }

  /// Seconds that the whole of the sample would take; `samples` of its shards. 0: nothing was done.
  double whole_seconds(double samples) const {
    if (of_samples_) return done_ > 0 ? elapsed_ * std::max(samples, done_) / done_ : 0;
    return sum_ > 0 ? whole_ * busy_ / sum_ : 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Open {
    Clock::time_point begin;
    double done;
  };
  static double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

  const bool of_samples_;
  std::mutex mutex_;  // guards what follows
  std::optional<Clock::time_point> begin_;
  std::map<const void*, Open> open_;  // videos that are worked on
  Clock::time_point last_;
  double done_ = 0, elapsed_ = 0;
  double busy_ = 0;             // time with a video at work
  double sum_ = 0, whole_ = 0;  // time of videos: of their parts; of all of them, scaled
};

/// A folder for temporary files that goes away.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = (std::filesystem::temp_directory_path() / "vfm-estimate-XXXXXX").string();
    if (!::mkdtemp(path_.data())) fail("cannot make a folder in '{}'", path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct DrawnRecords {
  std::vector<io::Record> sample;
  std::uint64_t all = 0;
};

/// Draws records with equal chance, in one pass (Vitter's algorithm R).
DrawnRecords draw(const Estimate& estimate) {
  DrawnRecords drawn;
  io::ManifestReader reader(estimate.inputs, [](const io::Fault& fault) {
    log_warning("{}: {}", fault.input, fault.message);
  });
  const Random random(0, Purpose::estimate);
  while (std::optional<io::Record> record = reader.next()) {
    if (record->kind != estimate.kind) continue;
    const double place = random.uniform(drawn.all) * static_cast<double>(drawn.all + 1);
    const std::uint64_t at = drawn.all < kSampled ? drawn.all : static_cast<std::uint64_t>(place);
    ++drawn.all;
    if (at == drawn.sample.size())
      drawn.sample.push_back(std::move(*record));
    else if (at < kSampled)
      drawn.sample[at] = std::move(*record);
  }
  return drawn;
}

Json estimate_json(const Estimate& estimate, const DrawnRecords& drawn, std::size_t used,
                   double seconds, double video) {
  const double scale = static_cast<double>(drawn.all) / static_cast<double>(used);
  const double a_day = video / seconds * 24;  // hours of video
  return {{"kind", "estimate"},
          {"of", estimate.kind},
          {"records", drawn.all},
          {"sampled", used},
          {"video_hours", six_digits(video * scale / 3600)},
          {"seconds", six_digits(seconds * scale)},
          {"jobs", estimate.jobs},
          {"hours_a_day", six_digits(a_day)},
          {"node_cores", kNodeCores},
          {"node_factor", kNodeFactor},
          {"hours_a_node_day", six_digits(a_day * kNodeCores / estimate.jobs * kNodeFactor)}};
}

}  // namespace

void add_dry_run(CLI::App& app, bool& dry_run) {
  app.add_flag("--dry-run", dry_run,
               "tell how long this would take, from ten seconds of a sample; keep nothing");
}

long tell_estimate(const Estimate& estimate) {
  const DrawnRecords drawn = draw(estimate);
  if (drawn.sample.empty()) fail("no {}s in the input", estimate.kind);
  const TemporaryFolder folder;
  const std::string manifest = io::join_path(folder.path(), "sample.jsonl");
  std::string lines;
  double video = 0, samples = 0;
  std::size_t used = 0;
  for (const io::Record& record : drawn.sample) {
    try {
      video += estimate.seconds(record);
      if (estimate.samples) samples += estimate.samples(record);
      lines += dump_json(record.json) + "\n";
      ++used;
    } catch (const Error& error) {
      log_warning("{}", error.what());
    }
  }
  if (used == 0) fail("nothing in the sample could be read");
  io::write_file(manifest, lines);
  estimate.inputs = {manifest};
  estimate.folder = io::join_path(folder.path(), "out");
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  io::ManifestWriter nowhere(null);
  SampleProgress progress(static_cast<bool>(estimate.samples));
  try {
    estimate.work(progress, nowhere);
  } catch (const Enough&) {
  }
  ::close(null);
  const double seconds = progress.whole_seconds(samples);
  if (seconds <= 0) fail("nothing in the sample could be used");
  const Json told = estimate_json(estimate, drawn, used, seconds, video);
  print(dump_json(told) + "\n");
  say(
      fmt::format("{} of {} {}s looked at, {:.1f} hours of video in all: {} with {} jobs\n"
                  "{:.0f} hours of video a day here; {:.0f} on a node of {} cores at {:.0f} % of a "
                  "core's rate\n",
                  used, drawn.all, estimate.kind, told.at("video_hours").get<double>(),
                  format_seconds(told.at("seconds").get<double>()), estimate.jobs,
                  told.at("hours_a_day").get<double>(), told.at("hours_a_node_day").get<double>(),
                  kNodeCores, 100 * kNodeFactor));
  return static_cast<long>(drawn.sample.size() - used);
}

}  // namespace vfm::cli

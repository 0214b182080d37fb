// SPDX-License-Identifier: Apache-2.0
#include "cli/estimate.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/philox.h"
#include "base/rounding.h"
#include "base/units.h"
#include "cli/option_table.h"
#include "cli/runner.h"
#include "cli/sample_progress.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"

namespace vfm::cli {
namespace {

constexpr std::size_t kSampled = 16, kSampledPerJob = 2;
/// The node of "hours_a_node_day", and the assumed part of each core's rate if all cores share one
/// memory.
constexpr int kNodeCores = 32;
constexpr double kNodeFactor = 0.8;

/// A folder that the destructor removes. Ignores SIGPIPE, which would leave the folder behind.
class TemporaryFolder {
 public:
  TemporaryFolder() : pipe_before_(::signal(SIGPIPE, SIG_IGN)) {
    path_ = (std::filesystem::temp_directory_path() / "vfm-estimate-XXXXXX").string();
    if (!::mkdtemp(path_.data())) fail_errno(errno, "cannot make the folder '{}'", path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    ::signal(SIGPIPE, pipe_before_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  sighandler_t pipe_before_;
};

struct DrawnRecords {
  std::vector<io::Record> sample;  // In random order.
  std::uint64_t all = 0;
};

bool is_work(const Estimate& estimate, const io::Record& record) {
  return record.kind == estimate.kind || (estimate.kind == "video" && record.kind == "image");
}

/// Draws records with equal chance, in one pass (Vitter's algorithm R).
DrawnRecords draw(const Estimate& estimate) {
  const std::size_t most =
      std::max(kSampled, kSampledPerJob * static_cast<std::size_t>(estimate.jobs));
  std::vector<io::Record> drawn;
  std::uint64_t all = 0;
  const Random random(0, Purpose::estimate);
  while (std::optional<io::Record> record = estimate.input.next()) {
    if (!is_work(estimate, *record)) continue;
    const double place = random.uniform(all) * static_cast<double>(all + 1);
    ++all;
    if (drawn.size() < most)
      drawn.push_back(std::move(*record));
    else if (place < static_cast<double>(most))
      drawn[static_cast<std::size_t>(place)] = std::move(*record);
  }
  estimate.input.streams().check_whole("nothing is estimated");
  // Work with a time limit sees only the first records, so their order must be random.
  DrawnRecords result{.all = all};
  for (const std::uint64_t i : Random(0, Purpose::estimate, 1).permutation(drawn.size()))
    result.sample.push_back(std::move(drawn[i]));
  return result;
}

std::uint64_t tar_bytes(const io::Record& shard) {
  std::uint64_t bytes = 0;
  for (const std::string& tar : io::column_tars(shard)) {
    bytes += io::size_of(tar).value_or(0);  // The error is reported when the tar is read.
  }
  return bytes;
}

struct Sample {
  std::string lines;  // A manifest.
  std::size_t records = 0, failed = 0;
  double video = 0, samples = 0;  // Seconds of video, and samples in shards.
};

Sample take_sample(const Estimate& estimate, const std::vector<io::Record>& drawn) {
  Sample sample;
  std::uint64_t bytes = 0;
  for (const io::Record& record : drawn) {
    try {
      const double video = estimate.seconds(record);
      const double samples = estimate.samples ? estimate.samples(record) : 0;
      if (estimate.phases && (bytes += tar_bytes(record)) > kEstimateBytes && sample.records > 0)
        break;
      sample.video += video;
      sample.samples += samples;
      sample.lines += dump_json(record.json) + "\n";
      ++sample.records;
    } catch (const Error& error) {
      log_warning("{}", error.what());
      ++sample.failed;
    }
  }
  if (sample.records == 0) fail("nothing in the sample could be read");
  return sample;
}

struct Took {
  double seconds = 0;
  std::size_t timed = 0;  // Videos with a measured time.
};

Took work_on(const Estimate& estimate, const Sample& sample) {
  const TemporaryFolder folder;
  const std::string manifest = io::join_path(folder.path(), "sample.jsonl");
  io::write_file(manifest, sample.lines);
  estimate.inputs = {manifest};
  estimate.folder = io::join_path(folder.path(), "out");
  const io::File null(::open("/dev/null", O_WRONLY | O_CLOEXEC), "/dev/null");
  if (!null) fail_errno(errno, "cannot open '/dev/null'");
  io::ManifestWriter nowhere(null.fd());
  const bool videos = !estimate.samples;
  SampleProgress progress(videos || estimate.phases ? 0 : kEstimateSeconds);
  try {
    const long failed = estimate.work(progress, nowhere);
    progress.end();
    if (videos && progress.timed() == 0 && failed >= static_cast<long>(sample.records)) return {};
  } catch (const Enough&) {
  }
  if (!videos) return {progress.seconds_for(sample.samples), 0};
  return {progress.seconds_for_videos(static_cast<double>(sample.records)), progress.timed()};
}

Json estimate_json(const Estimate& estimate, std::uint64_t all, const Sample& sample,
                   const Took& took) {
  const double scale = static_cast<double>(all) / static_cast<double>(sample.records);
  const double a_day = sample.video / took.seconds * 24;  // Hours of video.
  Json told = {
      {"kind", "estimate"}, {"of", estimate.kind}, {"records", all}, {"sampled", sample.records}};
  if (!estimate.samples) told["timed"] = took.timed;
  told.update({{"video_hours", six_digits(sample.video * scale / 3600)},
               {"seconds", six_digits(took.seconds * scale)},
               {"jobs", estimate.jobs},
               {"hours_a_day", six_digits(a_day)},
               {"node_cores", kNodeCores},
               {"node_factor", kNodeFactor},
               {"hours_a_node_day", six_digits(a_day * kNodeCores / estimate.jobs * kNodeFactor)}});
  if (estimate.counts) told["samples"] = estimate.counts();
  return told;
}

std::string in_words(const Json& told) {
  const auto number = [&](const char* name) { return told.at(name).get<double>(); };
  const auto count = [&](const char* name) { return told.value(name, std::uint64_t{0}); };
  std::string untimed;
  if (count("timed") > 0 && count("timed") < count("sampled"))
    untimed = fmt::format("{} of them told no time, and count as the others do\n",
                          count("sampled") - count("timed"));
  std::string stay;
  if (const auto samples = told.find("samples"); samples != told.end())
    stay = fmt::format("of the {} samples looked at {} would stay\n",
                       samples->at("read").get<std::uint64_t>(),
                       samples->at("stay").get<std::uint64_t>());
  return fmt::format(
      "{} of {} {}s looked at, {:.1f} hours of video in all: {} with {} jobs\n{}"
      "{:.0f} hours of video a day here; {:.0f} on a node of {} cores at {:.0f} % of a "
      "core's rate\n{}",
      count("sampled"), count("records"), told.at("of").get<std::string>(), number("video_hours"),
      format_seconds(number("seconds")), count("jobs"), untimed, number("hours_a_day"),
      number("hours_a_node_day"), kNodeCores, 100 * kNodeFactor, stay);
}

}  // namespace

void tell_fault(const io::Fault& fault) {
  log_warning("{}: {}", fault.input, fault.message);
}

void add_dry_run(Options& options, bool& dry_run) {
  options.flag("--dry-run", dry_run, "tell how long this would take; keep nothing")
      .everyday()
      .explained_in("vfm(7)");
}

long tell_estimate(const Estimate& estimate) {
  const DrawnRecords drawn = draw(estimate);
  if (drawn.sample.empty()) fail("no {}s in the input", estimate.kind);
  const Sample sample = take_sample(estimate, drawn.sample);
  const Took took = work_on(estimate, sample);
  if (took.seconds <= 0) fail("nothing in the sample could be used");
  Json told = estimate_json(estimate, drawn.all, sample, took);
  std::string words = in_words(told);
  if (estimate.model)
    if (Json model = estimate.model(words); !model.is_null()) told["model"] = std::move(model);
  print(dump_json(told) + "\n");
  say(words);
  return static_cast<long>(sample.failed);
}

}  // namespace vfm::cli

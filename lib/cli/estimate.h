// Estimates for --dry-run how long a tool would need for its whole input, on this machine and on a
// node of 32 cores.
//
// The estimate is made from a sample of the input, drawn with a fixed seed. The sample has sixteen
// records, or two records for each job if there are more than eight jobs. The outputs go to a
// temporary folder, which is removed. Only the middle ten seconds of a video are processed. The
// measured time is scaled to the length of all videos, or to the number of samples in all shards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "io/manifest.h"

namespace vfm::cli {

class Options;

/// Seconds of each video that are processed. For shards: seconds after which the work is stopped.
constexpr double kEstimateSeconds = 10;
/// Largest total size of the sampled shards in bytes, for a tool that reads shards twice. A single
/// shard may be larger.
constexpr std::uint64_t kEstimateBytes = 1'000'000'000;

struct EstimateInput {
  std::function<std::optional<io::Record>()>
      next;  ///< Returns the next record, or nullopt at the end.
  std::function<io::InputStreams()> streams;
};

/// Logs the fault as a warning.
void tell_fault(const io::Fault& fault);

/// `Reader` is io::ManifestReader or shard::ShardInput.
template <typename Reader>
EstimateInput estimate_input(const std::vector<std::string>& arguments) {
  const auto reader = std::make_shared<Reader>(arguments, tell_fault);
  return {[reader] { return reader->next(); },
          [reader]() -> io::InputStreams { return reader->streams(); }};
}

struct Estimate {
  std::vector<std::string>& inputs;  ///< Inputs of the tool: arguments for io::ManifestReader.
  std::string& folder;               ///< Output folder of the tool.
  EstimateInput input;
  std::string kind;  ///< Kind of the records: "shard" or "video". "video" includes the kind
                     ///< "image".
  int jobs = 1;
  /// Does the tool's work on the sample. Before the call, `inputs` is set to the sample and
  /// `folder` to a temporary folder. The Progress counts parts of videos or samples of shards, and
  /// may end the work by an exception. Returns the number of unusable records.
  std::function<long(Progress&, io::ManifestWriter&)> work;
  /// Whether the work has several phases. Work with several phases is not stopped before its end.
  bool phases = false;
  /// Return the seconds of video in a record, and the number of samples in a shard. `samples` is
  /// null for videos. Both throw Error if the record's file cannot be read.
  std::function<double(const io::Record&)> seconds, samples;
  /// Returns numbers of samples by name: "read" for the samples read, "stay" for the samples kept,
  /// and others. The function may be null.
  std::function<Json()> counts = nullptr;
  /// Returns the costs of the tool's model as JSON, and appends them as lines to `words`. The
  /// function is null if the tool uses no model.
  std::function<Json(std::string& words)> model = nullptr;
};

void add_dry_run(Options& options, bool& dry_run);

/// Prints the estimate as a record {"kind":"estimate",...} (vfm(7)) to standard output, and as text
/// to standard error. Returns the number of unreadable records in the sample. Throws Stopped.
/// Throws Error if no record could be used, or if the input is incomplete.
long tell_estimate(const Estimate& estimate);

}  // namespace vfm::cli

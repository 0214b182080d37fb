// --dry-run of the tools that curate: how long the whole input would take on this machine and on a
// node of 32 cores, estimated from a sample.
//
// Sixteen records of the input, or two for each job if that is more, drawn from a fixed seed, are
// processed as usual, into a temporary folder that is removed: ten seconds from the middle of each
// video; of shards as much as ten seconds of time allow, or a gigabyte if a tool reads them twice.
// Their time is scaled to all records, by lengths of videos and counts of samples. Seconds of video
// are the sample's, scaled likewise.
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

/// Seconds of each video in the sample; and of time for samples of shards.
constexpr double kEstimateSeconds = 10;
/// The most bytes of tars in a sample that is read more than once; one shard may be larger.
constexpr std::uint64_t kEstimateBytes = 1'000'000'000;

/// The records of the input, as read by the tool itself.
struct EstimateInput {
  std::function<std::optional<io::Record>()> next;  ///< as io::ManifestReader's
  std::function<const io::InputStreams&()> streams;
};

/// Logs the fault as a warning.
void tell_fault(const io::Fault& fault);

/// `Reader`: io::ManifestReader, or shard::ShardInput. Throws as it does.
template <typename Reader>
EstimateInput estimate_input(const std::vector<std::string>& arguments) {
  const auto reader = std::make_shared<Reader>(arguments, tell_fault);
  return {[reader] { return reader->next(); },
          [reader]() -> const io::InputStreams& { return reader->streams(); }};
}

struct Estimate {
  std::vector<std::string>& inputs;  ///< of the tool, as io::ManifestReader takes them
  std::string& folder;               ///< of the tool: where its output goes
  EstimateInput input;
  std::string kind;  ///< of the records that are work: "video", and then also "image"; "shard"
  int jobs = 1;
  /// The tool's own work with `inputs` and `folder`, which are set to the sample and a temporary
  /// folder. Its Progress, which counts parts of videos or samples of shards, may stop it by an
  /// exception. Returns the number of unusable records.
  std::function<long(Progress&, io::ManifestWriter&)> work;
  /// Whether the work has several phases, which need the whole sample: it is not stopped.
  bool phases = false;
  /// Seconds of video of a record; and samples of a shard's, null for videos. They throw Error if
  /// it cannot be read.
  std::function<double(const io::Record&)> seconds, samples;
  /// Counts of the sample's samples, by name, including "read" and "stay"; null: none.
  std::function<Json()> counts = nullptr;
  /// The costs of a model that worked, for "model"; it adds the same as lines to `words`. Null:
  /// none.
  std::function<Json(std::string& words)> model = nullptr;
};

/// Adds the option --dry-run.
void add_dry_run(Options& options, bool& dry_run);

/// Prints the estimate: {"kind":"estimate",...} (vfm(7)) to standard output, words to standard
/// error. Returns the number of unreadable records of the sample. Throws Error if none could be
/// used, or if the input broke off; Stopped.
long tell_estimate(const Estimate& estimate);

}  // namespace vfm::cli

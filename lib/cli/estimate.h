// --dry-run of the tools that curate: estimates from a sample how long the whole input would take
// on this machine and on a node of 32 cores.
//
// The sample has sixteen records of the input, or two for each job if that is more, drawn from a
// fixed seed. They are processed as usual, into a temporary folder that is removed. A video's
// middle ten seconds are processed; shards are processed for ten seconds, or up to a gigabyte if a
// tool reads them twice. The time is scaled to all records, by lengths of videos and counts of
// samples. Seconds of video are scaled in the same way.
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

/// Seconds that are processed of each video in the sample, and seconds of work on shards.
constexpr double kEstimateSeconds = 10;
/// The most bytes of tars in a sample that a tool reads more than once; a single shard may be
/// larger.
constexpr std::uint64_t kEstimateBytes = 1'000'000'000;

/// The records of the input, as the tool itself reads them.
struct EstimateInput {
  std::function<std::optional<io::Record>()> next;  ///< returns what ManifestReader::next() returns
  std::function<const io::InputStreams&()> streams;
};

/// Logs the fault as a warning.
void tell_fault(const io::Fault& fault);

/// `Reader`: io::ManifestReader, or shard::ShardInput. Throws what the Reader's constructor throws.
template <typename Reader>
EstimateInput estimate_input(const std::vector<std::string>& arguments) {
  const auto reader = std::make_shared<Reader>(arguments, tell_fault);
  return {[reader] { return reader->next(); },
          [reader]() -> const io::InputStreams& { return reader->streams(); }};
}

struct Estimate {
  std::vector<std::string>& inputs;  ///< the tool's inputs, as io::ManifestReader takes them
  std::string& folder;               ///< the tool's output folder
  EstimateInput input;
  std::string kind;  ///< kind of the records to process: "video" (also "image"), "shard"
  int jobs = 1;
  /// Does the tool's own work with `inputs` and `folder`, which are set to the sample and a
  /// temporary folder. Its Progress, which counts parts of videos or samples of shards, may end the
  /// work by an exception. Returns the number of unusable records.
  std::function<long(Progress&, io::ManifestWriter&)> work;
  /// Whether the work has several phases, which need the whole sample. Such work is not stopped.
  bool phases = false;
  /// Seconds of video in a record, and samples in a shard (null for videos). Both functions throw
  /// Error if the record's file cannot be read.
  std::function<double(const io::Record&)> seconds, samples;
  /// Returns counts of the processed samples, by name, including "read" and "stay". Null: there are
  /// no counts.
  std::function<Json()> counts = nullptr;
  /// Returns the costs of the model used, for "model", and adds them as lines to `words`. Null: no
  /// model is used.
  std::function<Json(std::string& words)> model = nullptr;
};

/// Adds the option --dry-run.
void add_dry_run(Options& options, bool& dry_run);

/// Prints the estimate: {"kind":"estimate",...} (vfm(7)) to standard output, text to standard
/// error. Returns the number of unreadable records of the sample. Throws Error if no record could
/// be used, or if the input is incomplete; Stopped.
long tell_estimate(const Estimate& estimate);

}  // namespace vfm::cli

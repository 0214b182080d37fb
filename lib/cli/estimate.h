// --dry-run of the tools that curate: how long the whole input would take on this machine and on a
// node of 32 cores, told from a sample of it.
//
// Sixteen records of the input, or two for each job if that is more, drawn from a fixed seed, are
// worked on as in earnest, into a folder for temporary files that is removed: of each video ten
// seconds from its middle, of shards what ten seconds of time allow, or a gigabyte, where a tool
// goes over them twice. What they took is scaled to all records, as lengths of videos and counts of
// samples say. Seconds of video are those of the sample, scaled likewise.
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

/// Of each video of the sample, and of time for samples of shards.
constexpr double kEstimateSeconds = 10;
/// Of the sample's tars, where the work goes over all of them more than once; but one shard at
/// least.
constexpr std::uint64_t kEstimateBytes = 1'000'000'000;

/// The records of the input, as the tool itself reads them.
struct EstimateInput {
  std::function<std::optional<io::Record>()> next;  ///< as io::ManifestReader's
  std::function<const io::InputStreams&()> streams;
};

/// Warns.
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
  /// The tool's own work with `inputs` and `folder`, which are changed to the sample and a folder
  /// that goes away. An exception of its Progress, in which it counts parts of videos or samples of
  /// shards, may stop it. Returns how much could not be used.
  std::function<long(Progress&, io::ManifestWriter&)> work;
  /// The work has several phases, which need all of the sample: it is not stopped.
  bool phases = false;
  /// Seconds of video of a record; and samples of a shard's, null of videos. They throw Error if it
  /// cannot be read.
  std::function<double(const io::Record&)> seconds, samples;
  /// What became of the sample's samples, by name, "read" and "stay" among them; null: nobody asks.
  std::function<Json()> counts = nullptr;
  /// What is told of a model that worked, "model"; and the same in words, lines, which it adds.
  /// Null: nothing.
  std::function<Json(std::string& words)> model = nullptr;
};

/// --dry-run.
void add_dry_run(Options& options, bool& dry_run);

/// Prints the estimate: {"kind":"estimate",...} (vfm(7)) to standard output, words to standard
/// error. Returns how many records of the sample could not be read. Throws Error if none could be
/// used, or if the input broke off; Stopped.
long tell_estimate(const Estimate& estimate);

}  // namespace vfm::cli

// --dry-run of the tools that curate: how long the whole input would take on this machine and on a
// node of 32 cores, told from a sample of it.
//
// Sixteen records of the input, drawn from a fixed seed, are worked on as in earnest, into a folder
// for temporary files that is removed: of each video ten seconds from its middle, of shards what
// ten seconds of time allow. What they took is scaled to all records, as lengths of videos and
// counts of samples say. Seconds of video are those of the sample, scaled likewise.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "io/manifest.h"

namespace CLI {
class App;
}

namespace vfm::cli {

/// Of each video of the sample, and of time for samples of shards.
constexpr double kEstimateSeconds = 10;

struct Estimate {
  std::vector<std::string>& inputs;  ///< of the tool: io::ManifestReader's arguments
  std::string& folder;               ///< of the tool: where its output goes
  std::string kind;                  ///< of the records that are work: "video" or "shard"
  int jobs = 1;
  /// The tool's own work with these inputs and this folder, which are changed to the sample and a
  /// folder that goes away. An exception of its Progress, in which it counts parts of videos or
  /// samples of shards, may stop it.
  std::function<void(Progress&, io::ManifestWriter&)> work;
  /// Seconds of video of a record; and samples of a shard's, null of videos. They throw Error if it
  /// cannot be read.
  std::function<double(const io::Record&)> seconds, samples;
};

/// --dry-run.
void add_dry_run(CLI::App& app, bool& dry_run);

/// Prints the estimate: {"kind":"estimate",...} (vfm-manifest(5)) to standard output, words to
/// standard error. Returns how many records of the sample could not be used. Throws Error if none
/// could; Stopped.
long tell_estimate(const Estimate& estimate);

}  // namespace vfm::cli

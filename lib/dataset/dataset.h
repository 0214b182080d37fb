// vfm-shard without argv: joins columns, filters, drops duplicates, bins, splits, shuffles, writes
// a dataset.
//
// Two passes. The first reads every sample once (dataset/scan.h); then everything is decided in
// memory (dataset/plan.h); the second re-reads them, in shuffled order, and writes the
// shards (dataset/write.h). Videos are never held in memory, their facts and embeddings are:
// under 1 kB a sample and 4 bytes a number of the embedding.
//
// Resume: DIR/plan.json names the plan, a hash of all that decides the shards. Beside each shard
// stands X.json with its record, written last. A second run plans anew: shards
// whose record is the planned one are kept, the others are removed
// (dataset/folder.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/slots.h"
#include "curate/binning.h"
#include "curate/split.h"
#include "io/manifest.h"
#include "shard/reader.h"

namespace vfm::dataset {

struct ShardOptions {
  std::vector<std::string> inputs;  ///< as shard/shard_input.h takes them
  std::string output;               ///< folder of the dataset
  bool force = false;
  shard::ReadLimits limits;
  std::string where;             ///< shard/where.h; empty: keep all
  bool keep_duplicates = false;  ///< drop none
  /// Near duplicates have at least this cosine; nothing: only exact duplicates are dropped.
  std::optional<double> duplicate_threshold = 0.99;
  bool rekey = false;  ///< new keys from contents, for foreign shards whose keys repeat
  curate::BinEdges edges;
  std::vector<curate::SplitPart> split{{"train", 1}};
  std::uint64_t shard_bytes = 500'000'000;
  std::uint64_t seed = 0;
  std::string report;  ///< HTML file; empty: none
};

/// Writes the dataset; a record a shard on standard output, in order, each when it is durable.
/// Returns the number of recorded errors. Throws Error when no sample is left; Error{usage} for a
/// bad filter, a field that no sample has, and for a folder that holds a dataset of other options
/// or sources; Stopped.
long run(const ShardOptions& options, Slots& slots, Progress& progress,
         io::ManifestWriter& manifest);

}  // namespace vfm::dataset

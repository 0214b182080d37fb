// The library behind vfm-shard: joins columns, filters, drops duplicates, bins, splits and shuffles
// samples, and writes a dataset.
//
// The first pass reads every sample once (dataset/scan.h). Then the dataset is planned
// (dataset/plan.h). The second pass reads samples again in shuffled order, and writes the shards
// (dataset/write.h). Between the passes, samples' facts are in temporary files in the dataset's
// folder (dataset/item_store.h); memory grows by a few bytes a sample. Compared embeddings are in
// memory; too many embeddings are an error.
//
// Resume: DIR/plan.json has the plan, a hash of all that decides the shards. X.json beside each
// shard has its record, and is written last. A second run plans again, keeps shards with the
// planned record, and removes all others (dataset/folder.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "curate/binning.h"
#include "curate/split.h"
#include "dataset/balance_options.h"
#include "dataset/sample_vector.h"
#include "io/manifest.h"
#include "shard/reader.h"
#include "share/slots.h"

namespace vfm::dataset {

/// The search for near duplicates. exact: compares all pairs (curate/vectors/dedup.h); clusters:
/// compares pairs in and around clusters (curate/vectors/cell_search.h); automatic: exact for up to
/// kMostExact samples, if ShardOptions::near_bytes suffices.
enum class DuplicateMethod { automatic, exact, clusters };
inline constexpr std::uint64_t kMostExact = 1'000'000;

struct ShardOptions {
  std::vector<std::string> inputs;  ///< forms: shard/shard_input.h
  std::string output;               ///< the dataset's folder; empty: write only the report
  bool force = false;
  shard::ReadLimits limits;
  std::string where;    ///< a filter (shard/where.h); empty: keep all
  std::string without;  ///< a file (dataset/without.h); empty: none
  BalanceOptions balance;
  bool keep_duplicates = false;  ///< drop no duplicates
  /// The least cosine of near duplicates. If it is not set, only exact duplicates are dropped.
  std::optional<double> duplicate_threshold = 0.99;
  /// The member with the compared vectors. If empty, the member is kDefaultVector, which samples
  /// may lack.
  std::string near_member;
  std::string compared_member() const { return near_member.empty() ? kDefaultVector : near_member; }
  DuplicateMethod duplicate_method = DuplicateMethod::automatic;
  /// Memory for comparing embeddings (near_bytes() in dataset/item_store.h). The other data take
  /// less than 512 MiB. The default suffices for all pairs of 1,000,000 samples of 768 numbers, or
  /// for 30 million samples in clusters.
  std::uint64_t near_bytes = std::uint64_t{7} << 29;
  bool rekey = false;  ///< make keys from contents, for foreign shards with repeated keys
  curate::BinEdges edges;
  std::vector<curate::SplitPart> split{{"train", 1}};
  std::uint64_t shard_bytes = 500'000'000;
  std::uint64_t seed = 0;
  std::string report;  ///< HTML file; empty: none
  /// Fields whose lowest and highest samples the page shows. If empty, the page uses all numbers
  /// that may be scores.
  std::vector<std::string> report_scores;
};

/// The numbers of samples that were read, that each step removed, and that stay.
struct SampleCounts {
  std::uint64_t read = 0, filtered = 0, without = 0, duplicates = 0, balanced = 0, stay = 0;
};

/// Writes the dataset and, on request, the report. Writes a record for each shard to standard
/// output, in order, when the shard is on disk. `counts` is set for a dry run, which reads only a
/// part of the input. A dry run fills `counts`, and lines of --without need not match a sample.
/// Returns the number of recorded errors. Throws Error if no sample is left; Error{usage} for a bad
/// filter, a field or vector that no sample has, or a folder with a dataset of different options or
/// sources, and Stopped.
long run(const ShardOptions& options, share::Slots& slots, Progress& progress,
         io::ManifestWriter& manifest, SampleCounts* counts = nullptr);

}  // namespace vfm::dataset

// vfm-shard without argv: joins columns, filters, drops duplicates, bins, splits, shuffles, writes
// a dataset.
//
// Two passes. The first reads every sample once (dataset/scan.h); then everything is decided
// (dataset/plan.h); the second re-reads them, in shuffled order, and writes the shards
// (dataset/write.h). Between them, temporary files in the dataset's folder hold the samples' facts,
// sorted as needed (dataset/item_store.h); memory grows only by some bits and bytes a sample.
// Compared embeddings are in memory; too many are refused.
//
// Resume: DIR/plan.json names the plan, a hash of all that decides the shards. Beside each shard is
// X.json with its record, written last. A second run plans again: shards with the planned record
// are kept, the others are removed
// (dataset/folder.h).
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

/// How near duplicates are searched: all pairs (curate/vectors/dedup.h), or within clusters and
/// around them (curate/vectors/cell_search.h); automatic: all pairs of up to kMostExact samples, as
/// far as ShardOptions::near_bytes allows.
enum class DuplicateMethod { automatic, exact, clusters };
inline constexpr std::uint64_t kMostExact = 1'000'000;

struct ShardOptions {
  std::vector<std::string> inputs;  ///< as shard/shard_input.h takes them
  std::string output;               ///< folder of the dataset; empty: only the report is written
  bool force = false;
  shard::ReadLimits limits;
  std::string where;    ///< shard/where.h; empty: keep all
  std::string without;  ///< a file (dataset/without.h); empty: none
  BalanceOptions balance;
  bool keep_duplicates = false;  ///< drop none
  /// Near duplicates have at least this cosine; nothing: only exact duplicates are dropped.
  std::optional<double> duplicate_threshold = 0.99;
  /// The member with the compared vectors; empty: kDefaultVector, which may then be missing.
  std::string near_member;
  std::string compared_member() const { return near_member.empty() ? kDefaultVector : near_member; }
  DuplicateMethod duplicate_method = DuplicateMethod::automatic;
  /// Memory for comparing embeddings, by near_bytes() of dataset/item_store.h; all else takes less
  /// than a quarter of 2 GiB. The default is enough for all pairs of 1,000,000 samples of 768
  /// numbers, or 30 million in clusters.
  std::uint64_t near_bytes = std::uint64_t{7} << 29;
  bool rekey = false;  ///< new keys from contents, for foreign shards whose keys repeat
  curate::BinEdges edges;
  std::vector<curate::SplitPart> split{{"train", 1}};
  std::uint64_t shard_bytes = 500'000'000;
  std::uint64_t seed = 0;
  std::string report;  ///< HTML file; empty: none
  /// The fields for which the page shows the least and the most; empty: numbers that may be scores.
  std::vector<std::string> report_scores;
};

/// The number of samples at each step.
struct SampleCounts {
  std::uint64_t read = 0, filtered = 0, without = 0, duplicates = 0, balanced = 0, stay = 0;
};

/// Writes the dataset, and the report where one is asked for; and a record for each shard to
/// standard output, in order, when it is durable. Returns the number of recorded errors. Throws
/// Error when no sample is left; Error{usage} for a bad filter, a field or vector that no sample
/// has, and for a folder with a dataset of other options or sources; Stopped. `counts`: filled if
/// the input is only a part, so that lines of --without may name nothing; else null.
long run(const ShardOptions& options, share::Slots& slots, Progress& progress,
         io::ManifestWriter& manifest, SampleCounts* counts = nullptr);

}  // namespace vfm::dataset

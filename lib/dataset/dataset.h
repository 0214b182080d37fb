// The library behind vfm-shard: joins columns, filters samples, drops duplicates, assigns bins and
// splits, shuffles samples, and writes a dataset.
//
// The first pass reads every sample once (dataset/scan.h). Then the dataset is planned
// (dataset/plan.h). The second pass reads samples again in shuffled order, and writes the shards
// (dataset/write.h). Memory grows by a few bytes a sample. Compared embeddings take up to
// ShardOptions::near_bytes.
//
// DIR/plan.json has the plan, and a hash of all that affects the shards. The file X.json beside a
// shard X.tar has the shard's record, and is written after the shard. A second run keeps shards of
// the same plan (dataset/folder.h).
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

/// A method of the search for near duplicates. `exact` compares all pairs (curate/vectors/dedup.h).
/// `clusters` compares pairs in the same or neighbouring clusters (curate/vectors/cell_search.h).
/// `automatic` is `exact` for up to kMostExact samples if ShardOptions::near_bytes suffices, and
/// `clusters` otherwise.
enum class DuplicateMethod { automatic, exact, clusters };
inline constexpr std::uint64_t kMostExact = 1'000'000;

struct ShardOptions {
  std::vector<std::string> inputs;  ///< Input arguments, in the forms of shard/shard_input.h.
  std::string output;  ///< Folder of the dataset. If empty, only the report is written.
  bool force = false;
  shard::ReadLimits limits;
  std::string where;    ///< Filter (shard/where.h). If empty, all samples pass.
  std::string without;  ///< File for dataset/without.h, or empty.
  BalanceOptions balance;
  bool keep_duplicates = false;
  /// Two samples are near duplicates if their vectors have at least this cosine. If not set, only
  /// exact duplicates are dropped.
  std::optional<double> duplicate_threshold = 0.99;
  /// Name of the member with the compared vectors. If empty, the member is kDefaultVector, and
  /// samples may lack the member.
  std::string near_member;
  std::string compared_member() const { return near_member.empty() ? kDefaultVector : near_member; }
  DuplicateMethod duplicate_method = DuplicateMethod::automatic;
  /// Memory in bytes for comparing embeddings (near_bytes() in dataset/item_store.h). In addition,
  /// vfm-shard takes less than 512 MiB. The default suffices for all pairs of 1,000,000 embeddings
  /// of 768 numbers, or for 30 million embeddings in clusters.
  std::uint64_t near_bytes = std::uint64_t{7} << 29;
  bool rekey = false;  ///< Makes new keys from the contents, for foreign shards with repeated keys.
  curate::BinEdges edges;
  std::vector<curate::SplitPart> split{{"train", 1}};
  std::uint64_t shard_bytes = 500'000'000;
  bool compress = false;  ///< Writes X.tar.zst (shard/writer.h).
  std::uint64_t seed = 0;
  std::string report;  ///< HTML file of the report, or empty.
  /// Fields by which the report shows the lowest and highest samples. If empty, all numbers that
  /// may be scores are used.
  std::vector<std::string> report_scores;
};

/// Numbers of samples: read, removed by each step, and kept.
struct SampleCounts {
  std::uint64_t read = 0, filtered = 0, without = 0, duplicates = 0, balanced = 0, stay = 0;
};

/// Writes the dataset and, on request, the report. Writes a record for each shard to standard
/// output, in order, when the shard is on disk. If `counts` is set, makes a dry run, which reads
/// only a part of the input and fills `counts`. In a dry run, lines of --without need not match a
/// sample. Returns the number of recorded errors. Throws Error if no sample is kept. Throws
/// Error{usage} for a bad filter, for a field or vector that no sample has, and for a folder with a
/// dataset of different options or sources. Throws Stopped.
long run(const ShardOptions& options, share::Slots& slots, Progress& progress,
         io::ManifestWriter& manifest, SampleCounts* counts = nullptr);

/// Makes the plan of a dataset without its shards: plan.bin (dataset/planned.h) and the files of
/// run() that do not depend on the shards. If the folder has parts of a scan
/// (dataset/scan_parts.h), takes what they found, else reads the input. Writes a record of the
/// plan. Returns and throws what run() does; and throws Error if a part is missing.
long make_plan(const ShardOptions& options, share::Slots& slots, Progress& progress,
               io::ManifestWriter& manifest);

}  // namespace vfm::dataset

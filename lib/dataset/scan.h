// The first pass of vfm-shard, which reads every sample once and keeps the facts for the plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/progress.h"
#include "dataset/dataset.h"
#include "dataset/item_store.h"
#include "dataset/join.h"
#include "dataset/left_out.h"
#include "dataset/sample_vector.h"
#include "dataset/shown.h"
#include "dataset/without.h"
#include "io/error_log.h"
#include "io/manifest.h"
#include "shard/comparisons.h"
#include "shard/reader.h"
#include "share/slots.h"

namespace vfm::dataset {

/// An input shard, given by the tars of its columns, first column first.
struct InputShard {
  std::string name;
  std::vector<std::string> tars;  ///< Paths of uncompressed or unpacked tars.
  std::uint64_t line = 0;
};

struct Scan {
  /// Puts temporary files into the dataset's folder.
  explicit Scan(const ShardOptions& options)
      : items(options.output, options.near_bytes,
              options.duplicate_method == DuplicateMethod::exact,
              !options.balance.rules.empty() || !options.report.empty()),
        left_out(options.output),
        without(options.without) {}

  std::vector<InputShard> shards;
  ItemStore items;
  std::vector<std::uint32_t> repeated;  ///< Items that have the key and media of an earlier item.
  std::set<std::string> fields;         ///< JSON fields of all samples, also of filtered samples.
  std::set<std::string> inside;         ///< Names "OBJECT.MEMBER" of the members of JSON objects.
  std::set<std::string> vectors;        ///< Members NAME.npy of all samples.
  std::vector<shard::Comparison> compared;  ///< Comparisons in options.where.
  /// The JSON fields with numbers, of samples that pass options.where. Empty without
  /// options.report.
  NumberNames numbers;
  VectorNames encoders;  ///< Encoders of the vectors that options name.
  std::uint64_t read = 0, filtered = 0;
  LeftOutList left_out;  ///< Samples left out by options.without.
  WithoutList without;
  /// Index into without.lines() -> number of samples that this line left out.
  std::map<std::size_t, std::uint64_t> taken_out;
  io::InputStreams streams;  ///< Finds records that mark the begin or end of an input stream.
};

/// Returns the folder where compressed tars are unpacked.
std::string unpack_folder(const std::string& output);

/// Reads all shards in `options.inputs`. Logs errors for records that are not shards, for samples
/// that cannot be read or joined, and for repeated keys with different contents. If options.where
/// is invalid, throws Error{usage} before anything is read.
Scan scan_shards(const ShardOptions& options, share::Slots& slots, Progress& progress,
                 io::ErrorLog& errors);

}  // namespace vfm::dataset

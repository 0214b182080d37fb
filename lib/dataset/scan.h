// The first pass of vfm-shard: reads every sample once, and keeps the facts for the plan.
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

/// An input shard: its columns' tars, the first column first.
struct InputShard {
  std::string name;               ///< name in messages
  std::vector<std::string> tars;  ///< uncompressed; compressed tars were unpacked
  std::uint64_t line = 0;         ///< line in the input
};

struct Scan {
  /// Temporary files are in the dataset's folder.
  explicit Scan(const ShardOptions& options)
      : items(options.output, options.near_bytes,
              options.duplicate_method == DuplicateMethod::exact,
              !options.balance.rules.empty() || !options.report.empty()),
        left_out(options.output),
        without(options.without) {}

  std::vector<InputShard> shards;
  ItemStore items;                          ///< items in input order
  std::vector<std::uint32_t> repeated;      ///< items with key and media of an earlier item
  std::set<std::string> fields;             ///< fields in the JSON of samples, also filtered ones
  std::set<std::string> inside;             ///< "OBJECT.MEMBER" of fields that are objects
  std::set<std::string> vectors;            ///< members NAME.npy of all samples
  std::vector<shard::Comparison> compared;  ///< the comparisons in options.where
  NumberNames numbers;                      ///< with options.report: of samples not filtered
  VectorNames encoders;                     ///< encoders of vectors that options name
  std::uint64_t read = 0, filtered = 0;
  LeftOutList left_out;                            ///< left out by options.without
  WithoutList without;                             ///< lines of options.without
  std::map<std::size_t, std::uint64_t> taken_out;  ///< line of `without` -> samples it took out
  io::InputStreams streams;                        ///< to check that the input was complete
};

/// Returns the folder where compressed tars are unpacked, so that samples can be read out of order.
std::string unpack_folder(const std::string& output);

/// Reads all shards in `options.inputs`. `errors` gets records of other kinds, samples that cannot
/// be read or joined, and repeated keys with different contents. Throws Error{usage} for a bad
/// options.where, before anything is read.
Scan scan_shards(const ShardOptions& options, share::Slots& slots, Progress& progress,
                 io::ErrorLog& errors);

}  // namespace vfm::dataset

// The first pass of vfm-shard, which reads every sample once and keeps the facts for the plan.
//
// One process scans the whole input (scan_shards()). Or each part of the input is scanned by a
// process of its own (dataset/scan_parts.h), and one process gathers what all found, in the order
// of the input.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/progress.h"
#include "dataset/dataset.h"
#include "dataset/item_store.h"
#include "dataset/join.h"
#include "dataset/left_out.h"
#include "dataset/sample_vector.h"
#include "dataset/scan_lines.h"
#include "dataset/scanned.h"
#include "dataset/shown.h"
#include "dataset/without.h"
#include "io/error_log.h"
#include "io/manifest.h"
#include "shard/comparisons.h"
#include "shard/reader.h"
#include "share/slots.h"

namespace vfm::dataset {

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

/// Returns the local folder where compressed tars are unpacked.
std::string unpack_folder(const std::string& output);
/// Removes this folder at the end.
class UnpackPlace {
 public:
  explicit UnpackPlace(const std::string& output) : folder_(unpack_folder(output)) {}
  ~UnpackPlace();
  UnpackPlace(const UnpackPlace&) = delete;
  UnpackPlace& operator=(const UnpackPlace&) = delete;
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

/// Gathers what was found in lines. Thread-safety: one thread at a time.
class Gatherer {
 public:
  /// All arguments must outlive this.
  Gatherer(Scan& scan, Progress& progress, io::ErrorLog& errors)
      : scan_(scan), progress_(progress), errors_(errors) {}
  /// Adds a line. Call it in the order of the lines.
  void add(LineFacts& facts, const Shapes& shapes, io::ScratchReader items,
           io::ScratchReader left_out);
  /// Finds repeated keys, after the last line.
  void finish();

 private:
  void add_compared(const std::vector<shard::Comparison>& some);

  Scan& scan_;
  Progress& progress_;
  io::ErrorLog& errors_;
};

/// How lines are scanned.
struct LineScan {
  const ShardOptions& options;
  const WithoutList& without;
  std::string unpacked;  ///< Folder where compressed tars are unpacked.
  /// Whether unpacked tars stay there for the second pass.
  bool keeps_unpacked = true;
};
/// Calls `done` with each line that `next` returns, in order.
void scan_lines(const LineScan& how, share::Slots& slots,
                const std::function<std::optional<ScanLine>()>& next,
                const std::function<void(Scanned& scanned)>& done);

/// Reads all shards in `options.inputs`. Logs errors for records that are not shards, for samples
/// that cannot be read or joined, and for repeated keys with different contents. If options.where
/// is invalid, throws Error{usage} before anything is read.
Scan scan_shards(const ShardOptions& options, share::Slots& slots, Progress& progress,
                 io::ErrorLog& errors);

}  // namespace vfm::dataset

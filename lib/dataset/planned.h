// What the second pass of vfm-shard needs: the shards to write, their samples, and the inputs with
// the samples. It is in memory and temporary files, or in the file DIR/plan.bin, from which several
// machines write the shards.
//
// plan.bin has the samples, shard by shard, then the packed facts of WritePlan, then 8 bytes with
// the place of these facts and 16 bytes with their XXH3-128. The facts have the place and hash of
// each shard's samples, so a writer reads only those of its own shards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "dataset/item.h"
#include "io/scratch_file.h"
#include "shard/reader.h"

namespace vfm::dataset {

struct PlannedShard {
  std::string split, bin;
  std::string path;  ///< Path relative to the dataset's folder.
  std::uint64_t samples = 0;
  double seconds = 0;  ///< Duration of all samples in seconds.
  std::string plan;    ///< Hash of the planned contents.
  Shape shape;         ///< Shape of the first sample. All samples have the same members.
  /// Range of the shard's samples in WritePlan::items, and the XXH3-128 of its bytes.
  std::uint64_t begin = 0, end = 0;
  std::string check;
};

struct WritePlan {
  /// Puts temporary files into `folder`.
  explicit WritePlan(const std::string& folder) : items(folder) {}

  /// Shards sorted by split (in the given order), bin and number.
  std::vector<PlannedShard> shards;
  std::string hash;  ///< Hash of the plans of all shards.
  std::vector<InputShard> inputs;
  Shapes shapes;
  bool rekey = false;
  shard::ReadLimits limits;
  HeldJson options;       ///< Options that affect the dataset.
  HeldJson counts;        ///< Members of dataset.json that are known before the shards are written.
  io::ScratchFile items;  ///< Samples, shard by shard, in the order of writing.
  std::string digest;     ///< XXH3-128 of the facts in plan.bin, for a plan that was read.
};

/// Removes a record of WritePlan::items from the front of `rest`: the key (put_text()), the numbers
/// of the shape and the input (put_number()), and the facts of put_facts() without content. The
/// item has no source, path, content and embedding. Throws Error.
Item take_planned(std::string_view& rest, const Shapes& shapes);

/// The samples of one shard as bytes for take_planned(). Thread-safety: any thread. Throws Error if
/// the samples are not as they were planned.
std::string planned_items(const WritePlan& plan, const PlannedShard& shard);

/// An iterator over the samples of a plan, shard by shard, in the order of writing. Thread-safety:
/// one thread at a time.
class PlannedItems {
 public:
  /// `plan` must outlive this.
  explicit PlannedItems(const WritePlan& plan) : plan_(plan) {}
  PlannedItems(const PlannedItems&) = delete;
  /// Reads the next item. Returns false at the end.
  bool next(Item& item);

 private:
  const WritePlan& plan_;
  std::size_t shard_ = 0;
  std::string items_;
  std::string_view rest_;
};

/// Adds the fields "split" and "bin", in this order, to the JSON of a sample in the shard.
void add_place(Json& meta, const PlannedShard& shard);

/// Returns DIR/plan.bin.
std::string plan_file(const std::string& directory);
/// Writes plan.bin of a plan.
void write_plan_file(const WritePlan& plan, const std::string& path);
/// Reads plan.bin. Keeps the file open, and reads samples from it when they are needed. Throws
/// Error if the file is damaged, or not the plan of the plan.json beside it.
WritePlan read_plan_file(const std::string& path);

}  // namespace vfm::dataset

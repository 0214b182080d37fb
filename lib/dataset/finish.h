// Writes those files of a dataset that describe all its shards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "dataset/plan.h"

namespace vfm::dataset {

/// Writes duplicates.jsonl, with a line for each dropped sample. Writes no file if no sample was
/// dropped.
void write_duplicates(const ShardOptions& options, ShardPlan& plan);
/// Writes left_out.jsonl, with a line for each sample of `list`. Writes no file if `list` is empty.
void write_left_out(const ShardOptions& options, LeftOutList& list);

/// Writes .nv-meta/, wids.json, README.md and, last, dataset.json. Returns the contents of
/// dataset.json: counts by split and bin, samples left out, and options. `records`: the records of
/// the shards, in the order of the plan.
Json write_dataset_files(const ShardOptions& options, const Scan& scan, ShardPlan& plan,
                         const std::vector<Json>& records);

}  // namespace vfm::dataset

// Writes the files that describe all shards of a dataset.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "dataset/plan.h"

namespace vfm::dataset {

/// Writes duplicates.jsonl, with a line for each dropped sample. If no sample was dropped, writes
/// no file.
void write_duplicates(const ShardOptions& options, ShardPlan& plan);
/// Writes left_out.jsonl, with a line for each sample of `list`. If `list` is empty, writes no
/// file.
void write_left_out(const ShardOptions& options, LeftOutList& list);

/// Writes .nv-meta/, wids.json, README.md and, at the end, dataset.json into the folder. Returns
/// the contents of dataset.json: counts by split and bin, samples left out, and options. `records`
/// has the records of the shards in the order of the plan.
Json write_dataset_files(const std::string& directory, const WritePlan& plan,
                         const std::vector<Json>& records);

}  // namespace vfm::dataset

// The report of vfm-shard, a page about the contents of a dataset.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "dataset/plan.h"

namespace vfm::dataset {

/// Writes the report to the file options.report. `summary` is the contents of dataset.json, or null
/// if no dataset is written. Throws Error and Stopped.
void write_shard_report(const ShardOptions& options, Scan& scan, ShardPlan& plan,
                        const Json& summary, share::Slots& slots);

}  // namespace vfm::dataset

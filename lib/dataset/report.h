// vfm-shard's --report: what is in the dataset, as a page to look at.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json.h"
#include "dataset/plan.h"

namespace vfm::dataset {

/// `summary` is dataset.json. Throws Error.
void write_shard_report(const std::string& path, Scan& scan, ShardPlan& plan, const Json& summary);

}  // namespace vfm::dataset

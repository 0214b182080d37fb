// The page about a model: its clips, its training and its training data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "models/folder/load_model.h"

namespace vfm::generate {

/// Writes the HTML page `path`. `clips` are manifest records of vfm-generate. The loss curve is
/// read from metrics.jsonl of the checkpoint's run folder, if there is one. `dataset` is a folder
/// of shards (of vfm-shard or vfm-clip), or empty. `incomplete` says why clips are missing, or is
/// empty. Unreadable parts are left out, and the page says so. Throws Error if the page cannot be
/// written.
void write_generation_report(const std::string& path, const std::vector<Json>& clips,
                             const models::LoadedModel& model, const std::string& dataset,
                             const std::string& incomplete);

}  // namespace vfm::generate

// Samples that a run is to leave out (vfm-train --skip-samples): they are planned as all others,
// but not read, and their place in a pack stays empty.
// Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "dist/world.h"
#include "train/data/dataset.h"

namespace vfm::train {

/// The failure of a sample that was left out so (train/data/shared_samples.h); it is not reported.
inline constexpr std::string_view kLeftOut = "left out by --skip-samples";
/// The keys of such samples in train.json.
inline constexpr const char* kSkippedSamples = "skipped_samples";

/// Leaves out the samples that `file` names: a line is a key, or a record of errors.jsonl. Without
/// a file, "", those that `train` says were left out of `run` before; it is the train.json of a run
/// that goes on, or null. Returns their keys on rank 0, sorted, each once. Reads the keys of all
/// samples. Throws Error{usage}. A collective.
std::vector<std::string> leave_out_skipped(dist::World& world, Dataset& data,
                                           const std::string& file, const std::string& run,
                                           const Json& train);

}  // namespace vfm::train

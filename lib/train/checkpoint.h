// Writing checkpoints (vfm-checkpoint(5)); finding the one to resume from.
//
// A checkpoint is built in RUN/checkpoints/.step-N.tmp, every file synced, COMPLETE with all hashes
// last, and renamed: a killed program leaves the old state or the whole new one.
// Reading: models/folder/checkpoint_folder.h. Thread-safety: one thread, one process at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/json.h"
#include "train/optimizer.h"

namespace vfm::train {

/// The largest file of weights.
inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{5} << 30;

/// RUN/checkpoints/step-00000500
std::string checkpoint_path(const std::string& run, std::int64_t step);

/// Writes weights, moments, average, `config` (model/config.json) and `train` as the checkpoint of
/// `step`, replacing one of that step. With `adapters`, the metadata of their file
/// (models/folder/lora_file.h), what is trained are adapters, and lies in lora/, in the forms of
/// diffusers and of peft. Returns its path when it is durable. Files above `max_file_bytes` are
/// split.
std::string write_checkpoint(const std::string& run, std::int64_t step, const Json& config,
                             const Optimizer& optimizer, const Json& train,
                             std::uint64_t max_file_bytes = kMaxFileBytes,
                             const std::map<std::string, std::string>& adapters = {});

/// Reads weights, moments and average into the optimizer's buffers and the parameters' values. Does
/// not verify hashes.
void read_checkpoint(const std::string& folder, const Optimizer& optimizer);

/// Removes what is no longer needed after the checkpoint of `step` was written: of those at regular
/// steps (multiples of `every`, and `step` itself if it is `last`) all but the newest `keep`; all
/// others but `step`: those saved on request, and damaged ones after the step that the run resumed
/// from; and temporary folders.
void prune_checkpoints(const std::string& run, std::int64_t step, std::int64_t every,
                       std::int64_t last, int keep);

/// The newest checkpoint of the run that passes verification, "" if the run has none at all. Warns
/// of each newer one that is damaged. Throws Error if there are some and none is good.
std::string newest_good_checkpoint(const std::string& run);

}  // namespace vfm::train

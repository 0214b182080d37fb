// What is in the files of a checkpoint. Thread-safety: the thread that trains.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_files.h"

namespace vfm::train {

/// The folder of a network after the first, in a checkpoint.
std::string folder_of(const OtherState& other);

/// The sets of tensors. They refer to the checkpoint's optimizers.
std::vector<SavedSet> sets_of(const Checkpoint& checkpoint, std::uint64_t max_file_bytes);

/// All that is not tensors, name -> contents.
std::map<std::string, std::string> texts_of(const Checkpoint& checkpoint);

}  // namespace vfm::train

// Samples that a run is to leave out (vfm-train --skip-samples): they are planned as all others,
// but not read, and their place in a pack stays empty.
// Thread-safety: free functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "train/data/dataset.h"

namespace vfm::train {

/// The failure of a sample that was left out so (train/data/shared_samples.h); it is not reported.
inline constexpr std::string_view kLeftOut = "left out by --skip-samples";

/// The keys that a file names, sorted, each once. A line is a key, or a record of errors.jsonl.
/// Throws Error{usage}.
std::vector<std::string> read_skipped(const std::string& path);

/// The numbers of the samples with these sorted keys, ascending. Reads the keys of all samples.
std::vector<std::size_t> find_samples(const Dataset& data, const std::vector<std::string>& keys);

}  // namespace vfm::train

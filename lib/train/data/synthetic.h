// Sizes of made-up latents and clips, for measuring a machine without data.
// Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "data/latents.h"

namespace vfm::train {

/// Frames, height, width of the latents, or of the pixels.
using SampleSizes = std::vector<std::array<int, 3>>;

/// Parses "16x88x160" or "1x64x64,8x32x32". Throws Error{usage} for anything else.
SampleSizes parse_sizes(std::string_view text);

/// 64 samples of each of these sizes, the sizes in turn.
std::vector<data::Entry> synthetic_entries(const SampleSizes& sizes);

}  // namespace vfm::train

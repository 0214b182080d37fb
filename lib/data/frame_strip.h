// Pictures of a clip before and after a tokenizer, for reports. Needs FFmpeg: built without it,
// frame_strip() throws. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace vfm::data {

/// A PNG of up to five frames, spread evenly over the clip, side by side: the original frames above
/// the decoded ones. Both arguments are (3, frames, height, width), RGB, clamped to [-1, 1].
std::string frame_strip(std::span<const float> original, std::span<const float> decoded, int frames,
                        int height, int width);

}  // namespace vfm::data

// Positions of the tokens of a Qwen2.5-VL prompt in time, rows and columns.
//
// A word has one number for all three. The positions of a picture begin at the first free number s:
// its tokens have (s + time, s + row, s + column), and the next word has the largest of these
// numbers plus 1. Time is counted in 1/tokens_per_second, rounded down; in a still picture it is 0.
// (transformers 5.24 continues after the longer side of a video even if its time is longer, and so
// uses numbers twice. The models were trained without that, and transformers up to 4 did as this
// code does.)
// Sources: Wang et al., "Qwen2-VL" (2024); transformers' Qwen2_5_VLModel for details.
// Pure. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/vlm/qwen_config.h"
#include "models/vlm/qwen_text.h"

namespace vfm::models {

/// The positions of a prompt's tokens. Every token of a picture has an image or video token in the
/// prompt; `sights` are in their order. Throws Error if they do not match the prompt, or for a
/// video longer than 2^24 / tokens_per_second.
std::vector<QwenPlace> qwen_places(std::span<const std::int32_t> ids,
                                   std::span<const QwenSight> sights, const QwenConfig& config);

}  // namespace vfm::models

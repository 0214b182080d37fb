// Where the tokens of a Qwen2.5-VL's prompt are, in time, rows and columns.
//
// Words have one number for all three. Those of a picture begin with the first free number s: its
// tokens have (s + time, s + row, s + column), and the word after it has the largest of them plus
// 1. Time is counted in 1/tokens_per_second, rounded down; in a still picture it is 0.
// (transformers 5.24 lets words go on after the longer side of a video even where its time is
// longer, and so uses numbers twice; the models were trained without that, and up to transformers 4
// it did as here.)
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

/// Of each token of a prompt in which every token of a picture has its own image or video token;
/// `sights` in their order. Throws Error unless they are those of the prompt, or for a video that
/// takes longer than 2^24 / tokens_per_second.
std::vector<QwenPlace> qwen_places(std::span<const std::int32_t> ids,
                                   std::span<const QwenSight> sights, const QwenConfig& config);

}  // namespace vfm::models

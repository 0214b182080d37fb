// The sizes of the two parts of Qwen2.5-VL, read from config.json (models/vlm/qwen_config.h), and
// values that follow from them.
// Sources: Bai et al., "Qwen2.5-VL technical report" (2025); transformers' Qwen2_5_VLConfig.
// Thread-safety: values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <vector>

namespace vfm::models {

/// The vision tower.
struct QwenVisionConfig {
  int depth = 32, width = 3584, feed_forward = 3420, heads = 16;
  int patch = 14;          ///< pixels along a side
  int temporal_patch = 2;  ///< frames of a patch
  int merge = 2;           ///< patches along a side of a token
  int window = 112;        ///< pixels along a side of an attention window
  int out_width = 3584;    ///< width of the tokens: that of the language model
  int tokens_per_second = 4;
  std::vector<int> full_blocks{7, 15, 23, 31};  ///< blocks that attend over whole frames

  int patch_elements() const { return 3 * temporal_patch * patch * patch; }
  int merged() const { return merge * merge; }
};

/// Rotary frequencies for texts longer than Llama 3.1 was first trained on ("llama3" in its
/// config). Slow frequencies are divided by `factor`, fast ones stay, and those in between are
/// blended. Source: transformers' _compute_llama3_parameters.
struct LlamaRope {
  double factor = 1;
  double low = 1, high = 4;  ///< turns in `original` tokens: below low is slow, above high is fast
  double original = 8192;    ///< tokens of the first training

  double frequency(double plain) const;
};

/// The language model: Qwen2, or Llama (models/vlm/smol_config.h).
struct QwenTextConfig {
  int vocabulary = 152064, width = 8192, feed_forward = 29568, layers = 80, heads = 64;
  int key_heads = 8;
  float epsilon = 1e-5f;
  double theta = 1e6;
  std::array<int, 3> sections{16, 24, 24};  ///< pairs of a head rotated by time, row, column
  int positions = 32768;                    ///< most tokens of a prompt with its answer
  bool tied = false;                        ///< the output matrix is the table of words
  bool biases = true;                       ///< queries, keys and values have biases
  std::optional<LlamaRope> stretched = {};  ///< none: frequencies from theta alone

  int head_dim() const { return width / heads; }
};

}  // namespace vfm::models

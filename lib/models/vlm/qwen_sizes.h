// The sizes of a Qwen2.5-VL's two parts, which its folder's config.json has
// (models/vlm/qwen_config.h), and what follows from them.
// Sources: Bai et al., "Qwen2.5-VL technical report" (2025); transformers' Qwen2_5_VLConfig.
// Thread-safety: values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <vector>

namespace vfm::models {

/// The tower that sees.
struct QwenVisionConfig {
  int depth = 32, width = 3584, feed_forward = 3420, heads = 16;
  int patch = 14;          ///< pixels along a side
  int temporal_patch = 2;  ///< frames
  int merge = 2;           ///< patches along a side of what becomes a token
  int window = 112;        ///< pixels along a side of what attends to itself
  int out_width = 3584;    ///< of the tokens: that of the language model
  int tokens_per_second = 4;
  std::vector<int> full_blocks{7, 15, 23, 31};  ///< blocks that attend over whole frames

  int patch_elements() const { return 3 * temporal_patch * patch * patch; }
  int merged() const { return merge * merge; }
};

/// Rotary frequencies of texts longer than those that Llama 3.1 was first trained on, as its config
/// names them ("llama3"): slow ones are divided by `factor`, fast ones stay, those between change
/// from one to the other. Source: transformers' _compute_llama3_parameters.
struct LlamaRope {
  double factor = 1;
  double low = 1, high = 4;  ///< turns in `original` tokens: fewer is slow, more is fast
  double original = 8192;    ///< tokens

  double frequency(double plain) const;
};

/// The language model: Qwen2, or Llama (models/vlm/smol_config.h).
struct QwenTextConfig {
  int vocabulary = 152064, width = 8192, feed_forward = 29568, layers = 80, heads = 64;
  int key_heads = 8;
  float epsilon = 1e-5f;
  double theta = 1e6;
  std::array<int, 3> sections{16, 24, 24};  ///< pairs of a head turned by time, row, column
  int positions = 32768;                    ///< tokens of a prompt and its answer, at most
  bool tied = false;                        ///< the table of words is the last matrix, too
  bool biases = true;                       ///< of queries, keys and values
  std::optional<LlamaRope> stretched = {};  ///< none: frequencies are theta's

  int head_dim() const { return width / heads; }
};

}  // namespace vfm::models

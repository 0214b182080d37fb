// The language model of Qwen2.5-VL (Qwen2), and of SmolVLM and Idefics3 (Llama): tokens and what
// was seen in, the next token out.
//
//   of each layer:
//     x += O attention(Q n + q, K n + k, V n + v)   n = RMS(x); causal; G key/value heads
//     x += W_down (silu(W_gate n) * (W_up n))       n = RMS(x)
//   logits = W RMS(x)
//
// A token is at (time, row, column): of a head's pairs, some are turned by each (M-RoPE;
// models/vlm/qwen_places.h says which numbers these are).
// Llama has no q, k and v, and a token's number for all three.
// Inference: of a prompt by itself, or of the next token of each of some texts.
// Sources: Wang et al., "Qwen2-VL" (2024); Bai et al., "Qwen2.5-VL technical report" (2025);
// transformers' Qwen2_5_VLModel for names and details.
// Shape letters: N tokens, D width, V vocabulary, G key/value heads, K head dim.
// Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "models/vlm/qwen_linear.h"
#include "models/vlm/qwen_sizes.h"
#include "models/vlm/qwen_vision.h"
#include "ops/attention/attention.h"

namespace vfm::models {

/// Of a token: time, row, column.
using QwenPlace = std::array<std::int32_t, 3>;

/// A video or a still picture in a prompt.
struct QwenSight {
  QwenGrid grid;
  bool still = false;
  double seconds = 1;  ///< from one pair of frames to the next
};

/// Keys and values of what a prompt and its answer have so far.
struct QwenMemory {
  std::vector<Tensor> layers;  ///< [capacity, 2 G K] each, in the type of products
  std::int64_t seen = 0;       ///< tokens
};

class QwenText {
 public:
  /// `weights`, under the names that add_text_tensors() has (models/vlm/qwen_config.h), must
  /// outlive it: the table of words is read row by row.
  QwenText(const QwenTextConfig& config, const QwenMatrices& weights);

  Device device() const { return device_; }
  QwenMemory memory(std::int64_t capacity) const;
  /// [N, D] f32. Throws Error for a number that is not in the vocabulary.
  Tensor embed(std::span<const std::int32_t> ids) const;
  /// What follows on what the memory has: x [N, D] f32, overwritten. Returns RMS(x), [N, D].
  /// Throws Error where the memory is too small; Stopped between layers.
  Tensor forward(const Tensor& x, std::span<const QwenPlace> places, QwenMemory& memory) const;
  /// The same of texts that have one token more each, at most ops::kFewRows: row i of x follows on
  /// what memory i has. Bits of a row do not depend on the others.
  Tensor step(const Tensor& x, std::span<const QwenPlace> places,
              std::span<QwenMemory* const> memories) const;
  /// Of rows of that: [N, V] f32; of up to ops::kFewRows rows bits of one do not depend on others.
  Tensor logits(const Tensor& hidden) const { return head_(hidden); }

 private:
  struct Layer {
    Tensor norm1, norm2;
    QwenLinear query, key, value, out;
    QwenFeedForward feed;
  };
  /// Queries; and keys and values, in the type of products, turned as the places say.
  struct Heads {
    Tensor queries, kv;
  };
  Heads heads(const Layer& layer, const Tensor& normed, const Tensor& cosines,
              const Tensor& sines) const;
  template <class Attend>
  Tensor through_layers(const Tensor& x, std::span<const QwenPlace> places,
                        const Attend& attend) const;
  Tensor attend(const Layer& layer, const Heads& heads, const Tensor& kv,
                const ops::AttentionPack& pack) const;
  Tensor attend_newest(const Layer& layer, const Heads& heads, std::size_t number,
                       std::span<QwenMemory* const> memories) const;

  QwenTextConfig config_;
  DType compute_;
  Device device_;
  const QwenMatrices& weights_;
  std::vector<Layer> layers_;
  Tensor norm_;
  QwenLinear head_;
};

}  // namespace vfm::models

// The language model of Qwen2.5-VL (Qwen2), and of SmolVLM and Idefics3 (Llama): tokens and what
// was seen in, the next token out.
//
//   of each layer:
//     x += O attention(Q n + q, K n + k, V n + v)   n = RMS(x); causal; G key/value heads
//     x += W_down (silu(W_gate n) * (W_up n))       n = RMS(x)
//   logits = W RMS(x)
//
// A token is at (time, row, column): of a head's pairs, some are turned by each (M-RoPE). Words
// have one number for all three. Those of a picture begin with the first free number s: its tokens
// have (s + time, s + row, s + column), and the word after it has the largest of them plus 1. Time
// is counted in 1/tokens_per_second, rounded down; in a still picture it is 0. (transformers 5.24
// lets words go on after the longer side of a video even where its time is longer, and so uses
// numbers twice; the models were trained without that, and up to transformers 4 it did as here.)
// Llama has no q, k and v, and a token's number for all three.
// Inference on the CPU: of a prompt by itself, or of the next token of each of some texts.
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

#include "models/vlm/qwen_config.h"
#include "models/vlm/qwen_vision.h"
#include "models/vlm/qwen_weights.h"

namespace vfm::models {

/// Of a token: time, row, column.
using QwenPlace = std::array<std::int32_t, 3>;

/// A video or a still picture in a prompt.
struct QwenSight {
  QwenGrid grid;
  bool still = false;
  double seconds = 1;  ///< from one pair of frames to the next
};

/// Of each token of a prompt in which every token of a picture has its own image or video token;
/// `sights` in their order. Throws Error unless they are those of the prompt, or for a video that
/// takes longer than 2^24 / tokens_per_second.
std::vector<QwenPlace> qwen_places(std::span<const std::int32_t> ids,
                                   std::span<const QwenSight> sights, const QwenConfig& config);

/// Keys and values of what a prompt and its answer have so far.
struct QwenMemory {
  std::vector<Tensor> layers;  ///< [capacity, 2 G K] each, in the type of products
  std::int64_t seen = 0;       ///< tokens
};

class QwenText {
 public:
  /// `weights` as QwenWeights has them of `set`, whose table is read row by row.
  QwenText(const QwenTextConfig& config, const io::TensorSet& set, const QwenWeights& weights);

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
                std::int64_t before) const;
  Tensor attend_newest(const Layer& layer, const Heads& heads, std::size_t number,
                       std::span<QwenMemory* const> memories) const;

  QwenTextConfig config_;
  DType compute_;
  Device device_;
  const io::TensorSet& set_;
  std::vector<Layer> layers_;
  Tensor norm_;
  QwenLinear head_;
};

}  // namespace vfm::models

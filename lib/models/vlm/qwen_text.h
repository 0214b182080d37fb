// The language model of Qwen2.5-VL (Qwen2), and of SmolVLM and Idefics3 (Llama): tokens of text and
// pictures in, the next token out.
//
//   for each layer:
//     x += O attention(Q n + q, K n + k, V n + v)   n = RMS(x); causal; G key/value heads
//     x += W_down (silu(W_gate n) * (W_up n))       n = RMS(x)
//   logits = W RMS(x)
//
// A token has a position (time, row, column). Each of the three rotates some pairs of a head
// (M-RoPE; models/vlm/qwen_places.h defines the positions). Llama has no q, k and v, and all three
// numbers are the token's number.
// Inference: on one prompt, or on the next token of each of several texts.
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

/// Position of a token: time, row, column.
using QwenPlace = std::array<std::int32_t, 3>;

/// A video or a still picture in a prompt.
struct QwenSight {
  QwenGrid grid;
  bool still = false;
  double seconds = 1;  ///< seconds from one pair of frames to the next
};

/// Keys and values of a prompt and its answer so far.
struct QwenMemory {
  std::vector<Tensor> layers;  ///< [capacity, 2 G K] each, in the type of products
  std::int64_t seen = 0;       ///< number of tokens so far
};

class QwenText {
 public:
  /// `weights` has the names of add_text_tensors() (models/vlm/qwen_config.h) and must outlive this
  /// object, because the table of words is read row by row.
  QwenText(const QwenTextConfig& config, const QwenMatrices& weights);

  Device device() const { return device_; }
  QwenMemory memory(std::int64_t capacity) const;
  /// [N, D] f32. Throws Error for a number outside the vocabulary.
  Tensor embed(std::span<const std::int32_t> ids) const;
  /// Reads more tokens after those in `memory`. x [N, D] f32 is overwritten. Returns RMS(x), [N,
  /// D]. Throws Error if the memory is too small; Stopped between layers.
  Tensor forward(const Tensor& x, std::span<const QwenPlace> places, QwenMemory& memory) const;
  /// The same for one more token of each of several texts, at most ops::kFewRows: row i of x
  /// follows memory i. The bits of a row do not depend on the other rows.
  Tensor step(const Tensor& x, std::span<const QwenPlace> places,
              std::span<QwenMemory* const> memories) const;
  /// Logits of rows of forward() or step(): [N, V] f32. Up to ops::kFewRows rows, the bits of a row
  /// do not depend on the others.
  Tensor logits(const Tensor& hidden) const { return head_(hidden); }

 private:
  struct Layer {
    Tensor norm1, norm2;
    QwenLinear query, key, value, out;
    QwenFeedForward feed;
  };
  /// Queries; and keys and values, in the type of products, rotated by their positions.
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

// The vision tower of SmolVLM and Idefics3: square tiles in, tokens of the language model out.
//
//   x = W patches + w + places[bucket]     a patch: 3 channels, P x P pixels
//   x = layers(x)                          models/encoder/encoder_stack.h: SigLIP's
//   token = C [norm(x) of S x S patches]   "pixel shuffle"; C has no bias
//
// A tile has n x n patches, and the model m x m position embeddings ("places"). Patch i of a row
// has place floor(i m / n), computed in single precision with transformers' sums, so that rounding
// is the same. A tile is computed by itself, so its tokens do not depend on other tiles; several
// tiles share the reading of weights. Inference. On a GPU the weights of layers are copied there
// for each look (EncoderStack).
// Sources: Zhai et al., "Sigmoid loss for language image pre-training" (2023); transformers'
// SmolVLMVisionTransformer and SmolVLMConnector for names and details.
// Shape letters: T tiles, N patches of a tile, M tokens of a tile, D width of the language model.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "io/tensor_set.h"
#include "models/encoder/encoder_stack.h"
#include "models/vlm/qwen_weights.h"
#include "models/vlm/smol_config.h"
#include "ops/pointwise/row_order.h"

namespace vfm::models {

/// The place, 0 to m - 1, of each of n patches along a side.
std::vector<std::int64_t> smol_places(int n, int m);

class SmolVision {
 public:
  /// `set` has the tensors of SmolConfig::tensors() and must outlive this object.
  SmolVision(const SmolConfig& config, const io::TensorSet& set, const QwenWeights& weights);

  /// patches [T N, 3 P P] f32 of tiles of `side` x `side` patches, on the CPU or the model's
  /// device. Returns [T M, D] f32. Throws Error for another shape; Stopped between layers.
  Tensor forward(const Tensor& patches, int side) const;

 private:
  Tensor end(const Tensor& x, int side, const ops::RowChoice& together) const;

  SmolConfig config_;
  Device device_;
  QwenLinear embed_;
  Tensor places_, norm_, norm_bias_;
  QwenLinear connector_;
  EncoderStack stack_;
};

}  // namespace vfm::models

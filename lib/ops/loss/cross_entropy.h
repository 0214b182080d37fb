// The loss of a model of discrete tokens: cross-entropy, and the z-loss that keeps the logits from
// drifting.
//
//   lse = ln sum_v e^logit[v],   loss = lse - logit[target] + z lse^2
//   d loss / d logit[v] = softmax[v] (1 + 2 z lse) - [v = target]
//
// Source of the z-loss: de Brebisson and Vincent, "The Z-loss" (2016); Chowdhery et al., "PaLM"
// (2022), where z is 1e-4.
// Shape letters: S tokens, V vocabulary.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace vfm::ops {

struct CrossEntropy {
  Tensor seed;    ///< [S, V]: scale * gradient of the sum of the losses; undefined for scale 0
  Tensor losses;  ///< [S] f32, 0 for a token without target

  /// The sum over each stretch of tokens, lengths[i] of them, in order. On a GPU it waits for what
  /// was queued, so do it late.
  std::vector<double> read_sums(std::span<const std::int64_t> lengths) const;
};

/// logits [S, V] f32; targets below V, or -1 for a token that has none: it counts nothing. With a
/// scale other than 0 the logits are overwritten: the seed stands where they stood, since both
/// together are by far the largest tensors of such a model.
CrossEntropy cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets,
                           double z_loss, double scale);

}  // namespace vfm::ops

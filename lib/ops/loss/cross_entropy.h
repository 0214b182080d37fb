// The loss of a model of discrete tokens: cross-entropy, and the z-loss that keeps the logits from
// drifting.
//
//   lse = ln sum_v e^logit[v],   loss = lse - logit[target] + z lse^2
//   d loss / d logit[v] = softmax[v] (1 + 2 z lse) - [v = target]
//
// Source of the z-loss: de Brebisson and Vincent, "The Z-loss" (2016); Chowdhery et al., "PaLM"
// (2022), where z is 1e-4.
// Where ranks have shares of the vocabulary, each gives the log-sum-exp of its own logits and the
// target's, if it is there; of all those each makes the loss, and the gradient of its own logits:
//
//   lse = ln sum_share e^lse[share]
//
// Shape letters: S tokens, V vocabulary.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/exchange.h"

namespace vfm::ops {

struct CrossEntropy {
  Tensor seed;    ///< [S, V]: scale * gradient of the sum of the losses; undefined for scale 0
  Tensor losses;  ///< [S] f32, 0 for a token without target

  /// The sum over each stretch of tokens, lengths[i] of them, in order. On a GPU it waits for what
  /// was queued, so do it late.
  std::vector<double> read_sums(std::span<const std::int64_t> lengths) const;
};

/// A part of the vocabulary's columns. By default there is but one.
struct VocabularyShare {
  std::int64_t first = 0;  ///< the entry of the first column
  std::int64_t of = 0;     ///< entries of all shares
  /// From [S, 2] of this share to [shares S, 2] of all, in one order everywhere; forward alone.
  Exchange gather = {};
};

/// logits [S, V] f32; targets below V, or -1 for a token that has none: it counts nothing. With a
/// scale other than 0 the logits are overwritten: the seed stands where they stood, since both
/// together are by far the largest tensors of such a model. Of a share's logits [S, its columns]
/// the losses are those of the whole vocabulary, on every rank, and the seed is that of its
/// columns.
CrossEntropy cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets,
                           double z_loss, double scale, const VocabularyShare& share = {});

}  // namespace vfm::ops

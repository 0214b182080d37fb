// The loss of a model of discrete tokens: cross-entropy, and the z-loss, which keeps the logits
// from drifting.
//
//   lse = ln sum_v e^logit[v],   loss = lse - logit[target] + z lse^2
//   d loss / d logit[v] = softmax[v] (1 + 2 z lse) - [v = target]
//
// Source of the z-loss: de Brebisson and Vincent, "The Z-loss" (2016); Chowdhery et al., "PaLM"
// (2022), where z is 1e-4.
// If ranks have shares of the vocabulary, each rank sends the log-sum-exp of its own logits, and
// the target's logit if it has it. From those of all ranks, each rank computes the loss and the
// gradient of its own logits:
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
  Tensor seed;    ///< [S, V]: scale * gradient of the sum of the losses; undefined if scale is 0
  Tensor losses;  ///< [S] f32; 0 for a token without target

  /// Sums the losses over consecutive stretches of lengths[i] tokens. On a GPU this waits for all
  /// queued work, so call it late.
  std::vector<double> read_sums(std::span<const std::int64_t> lengths) const;
};

/// A rank's part of the vocabulary's columns. The default is the whole vocabulary.
struct VocabularyShare {
  std::int64_t first = 0;  ///< vocabulary entry of the first column
  std::int64_t of = 0;     ///< number of entries of all shares together
  /// Gathers [S, 2] of this share to [shares S, 2], in the same order on all ranks. Only its
  /// forward is used.
  Exchange gather = {};
};

/// `logits` is [S, V] f32. Targets are below V, or -1 for a token without target, which counts
/// nothing. If scale is not 0, the seed overwrites the logits, as both are by far the largest
/// tensors of such a model. With a share, the logits are [S, columns of the share]. The losses are
/// then those of the whole vocabulary, on every rank, and the seed has the share's columns.
CrossEntropy cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets,
                           double z_loss, double scale, const VocabularyShare& share = {});

}  // namespace vfm::ops

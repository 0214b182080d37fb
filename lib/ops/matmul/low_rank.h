// LoRA adapters of a weight: W + scale B A, a product of two small matrices that is never formed.
// Gradients are computed for A and B; W needs none.
// Source: Hu et al., "LoRA: low-rank adaptation of large language models" (2021).
// Shape letters: N rows of a batch, I inputs, O outputs of the weight, P outputs with this adapter,
// R rank of the adapter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ops/tape.h"

namespace vfm::ops {

/// An adapter of P rows of a weight [O, I], from row `first` on.
struct LowRank {
  Tensor a;  ///< [R, I], in the weight's dtype
  Tensor b;  ///< [P, R], in the weight's dtype
  std::int64_t first = 0;
  float scale = 1;
};

/// Provides a matrix that is not always in memory, such as one that is sharded over ranks.
class MatrixSource {
 public:
  virtual ~MatrixSource() = default;
  /// Returns the matrix, which stays valid while somebody holds it. An op releases it after its
  /// product and calls get() again in backward.
  virtual Tensor get() const = 0;
};

/// The weight of a linear layer (ops/matmul/linear.h): a matrix, adapters that add to its rows, and
/// a bias.
struct LinearWeight {
  LinearWeight(Tensor matrix) : w(std::move(matrix)) {}  // NOLINT: a matrix is the usual case
  /// `name` (Tensor::name) gives the matrix's shape and stands for it on the tape, which watches
  /// it.
  LinearWeight(Tensor name, std::shared_ptr<const MatrixSource> gives)
      : w(std::move(name)), source(std::move(gives)) {}
  Tensor values() const { return source ? source->get() : w; }

  Tensor w;  ///< [O, I]; only a name if there is a source
  std::shared_ptr<const MatrixSource> source;
  std::vector<LowRank> added;
  Tensor bias;  ///< [O] f32, watched for its gradient; undefined for none (ops/matmul/bias.h)
};

/// target[:, first : first + P] += scale term. target [N, O] and term [N, P] have the same dtype,
/// f32 or bf16. Not recorded.
void add_scaled_columns(const Tensor& target, std::int64_t first, const Tensor& term, float scale);

/// y[:, first : first + P] += scale x A^T B^T for y [N, O], f32 or x's dtype, and x [N, I]. Not
/// recorded.
void add_low_rank(const Tensor& y, const Tensor& x, const LowRank& added);

/// First part of the backward pass of add_low_rank. dy is [N, O] in the matrices' dtype. Returns
/// g = scale dy B, [N, R]. If dx [N, I] is defined, adds to it; it has the same dtype.
Tensor low_rank_input_gradient(const Tensor& dy, const LowRank& added, const Tensor& dx);
/// Second part: adds to the gradients of A and B if they are wanted.
void low_rank_weight_gradients(Tape& tape, const Tensor& dy, const Tensor& x, const LowRank& added,
                               const Tensor& g);

}  // namespace vfm::ops

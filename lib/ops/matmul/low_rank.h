// What an adapter adds to a weight: a product of two small matrices, W + scale B A, which is never
// formed. Its gradients are of the size of A and B, and W needs none.
// Source: Hu et al., "LoRA: low-rank adaptation of large language models" (2021).
// Shape letters: N rows of a batch, I inputs, O outputs of the weight, P of them with this
// addition, R rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ops/tape.h"

namespace vfm::ops {

/// To P rows of a weight [O, I], from row `first` on.
struct LowRank {
  Tensor a;  ///< [R, I], of the weight's dtype
  Tensor b;  ///< [P, R]
  std::int64_t first = 0;
  float scale = 1;
};

/// Gives a matrix that is not always in memory, as one of which each rank keeps a part.
class MatrixSource {
 public:
  virtual ~MatrixSource() = default;
  /// The matrix, at least until nobody holds it any more: an op lets it go when its product is
  /// made, and asks again in backward.
  virtual Tensor get() const = 0;
};

/// What a linear layer multiplies by (ops/matmul/linear.h): a matrix, and what adapters add to its
/// rows.
struct LinearWeight {
  LinearWeight(Tensor matrix) : w(std::move(matrix)) {}  // NOLINT: a matrix is the usual case
  /// `name` (Tensor::name) stands for the matrix: on the tape, which watches it, and for its shape.
  LinearWeight(Tensor name, std::shared_ptr<const MatrixSource> gives)
      : w(std::move(name)), source(std::move(gives)) {}
  Tensor values() const { return source ? source->get() : w; }

  Tensor w;  ///< [O, I]; with a source its name
  std::shared_ptr<const MatrixSource> source;
  std::vector<LowRank> added;
};

/// target[:, first : first + P] += scale term. target [N, O] and term [N, P] of one dtype, f32 or
/// bf16. Not recorded.
void add_scaled_columns(const Tensor& target, std::int64_t first, const Tensor& term, float scale);

/// y[:, first : first + P] += scale x A^T B^T: y [N, O], f32 or x's dtype; x [N, I]. Not recorded.
void add_low_rank(const Tensor& y, const Tensor& x, const LowRank& added);

/// Backward of add_low_rank in two parts. From dy [N, O], of the matrices' dtype, returns g = scale
/// dy B, [N, R], and adds to dx [N, I], of that dtype too, if it is defined.
Tensor low_rank_input_gradient(const Tensor& dy, const LowRank& added, const Tensor& dx);
/// Adds to the gradients of A and B, where they are wanted.
void low_rank_weight_gradients(Tape& tape, const Tensor& dy, const Tensor& x, const LowRank& added,
                               const Tensor& g);

}  // namespace vfm::ops

// One matrix of which each rank keeps a part, its stretch of all elements (nn/block_shards.h).
// Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "dist/group.h"
#include "ops/matmul/low_rank.h"
#include "ops/tape.h"
#include "tensor/tensor.h"

namespace vfm::nn {

class ShardedMatrix final : public ops::MatrixSource {
 public:
  /// A matrix of `shape`, kept by the ranks of `group`. Has a gradient if `trained`.
  ShardedMatrix(const Shape& shape, DType dtype, Device device, dist::Group& group, bool trained);

  /// The gathered matrix. Throws Error if its block is not gathered.
  Tensor get() const override;

  const Tensor& name() const { return name_; }
  const Tensor& own() const { return own_; }            ///< this rank's stretch, [n]
  const Tensor& gradient() const { return gradient_; }  ///< of own(), f32; undefined: not trained
  void watch(ops::Tape& tape) const;
  /// Gathers `stretch`, this rank's stretch in another type, from now on; undefined: own().
  void gather_in_place_of_own(Tensor stretch) { low_ = std::move(stretch); }
  Tensor gather() const;                       ///< the whole matrix from own(); a collective
  Tensor stretch_of(const Tensor& all) const;  ///< this rank's stretch of such a matrix
  /// Keeps this rank's stretch of `all`, of another type, from now on and frees own().
  void keep_in_place_of_own(const Tensor& all);

 private:
  friend class BlockShards;
  const Tensor name_, no_gradient_;  // `no_gradient_` is the name of the gradient's buffer
  dist::Group& group_;
  std::vector<std::int64_t> rows_;  // elements of each rank
  Tensor own_, gradient_;
  Tensor low_;        // gathered in place of own_ if defined
  Tensor all_, sum_;  // the gathered matrix and the buffer of its gradient, while they exist
};

}  // namespace vfm::nn

// A matrix of a block that is kept as 8-bit numbers (ops/matmul/quantize.h) and converted back
// to its own type for each product. The product knows it by a name (ops::MatrixSource). The numbers
// take half of bf16's memory or a quarter of f32's, and only one such matrix is converted at a
// time.
//
// Before it is rounded, the matrix may stay in the host's memory and be copied to the GPU for each
// product. So a network that fits on the GPU only in 8 bits can be loaded, changed by adapters and
// compared with its rounded form.
// If each rank keeps a part of the matrix (nn/sharded_matrix.h), the codes are gathered.
// Thread-safety: get() from any thread; the rest from one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "nn/sharded_matrix.h"
#include "ops/matmul/low_rank.h"
#include "ops/matmul/quantize.h"
#include "tensor/tensor.h"

namespace vfm::nn {

class QuantizedMatrix final : public ops::MatrixSource {
 public:
  /// A matrix that is not rounded yet. waiting() is on the host; for Device::meta it has no values.
  QuantizedMatrix(const Shape& shape, DType dtype, Device device);
  /// A rounded matrix whose values have type `dtype`. With `shards` the codes are in `shards`.
  QuantizedMatrix(ops::QuantizedRows rows, DType dtype, std::shared_ptr<ShardedMatrix> shards)
      : dtype_(dtype), rows_(std::move(rows)), shards_(std::move(shards)) {}

  const Tensor& waiting() const { return waiting_; }
  Tensor get() const override;

 private:
  const DType dtype_;
  Device device_ = Device::cpu;
  Tensor waiting_;
  ops::QuantizedRows rows_;
  std::shared_ptr<ShardedMatrix> shards_;
};

/// Quantises x [O, I] with one scale per row. The other `ranks` have more columns of the same rows;
/// null: x is whole. A collective.
ops::QuantizedRows quantize_rows_together(const Tensor& x, dist::Group* ranks,
                                          ops::RowFormat format);

}  // namespace vfm::nn

// A matrix of a block that is kept as numbers of 8 bits (ops/matmul/quantize_rows.h), and made
// numbers of its own type again for each product, which knows it by a name (ops::MatrixSource). So
// its memory is half of bf16's or a quarter of f32's, and one such matrix is whole at a time.
//
// Until it is rounded it may wait, as it is, in the host's memory, and come to the GPU for a
// product: a network that the GPU has room for in 8 bits alone can be loaded, changed by adapters
// and compared with its rounded form.
// Where each rank keeps a part of it (nn/block_shards.h), the codes are what is gathered.
// Thread-safety: get() from any thread; the rest from one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "nn/block_shards.h"
#include "ops/matmul/low_rank.h"
#include "ops/matmul/quantize_rows.h"
#include "tensor/tensor.h"

namespace vfm::nn {

class QuantizedMatrix final : public ops::MatrixSource {
 public:
  /// One that waits: waiting() is on the host, or on Device::meta nowhere.
  QuantizedMatrix(const Shape& shape, DType dtype, Device device);
  /// One that is rounded, of values of `dtype`. With shards these have the codes.
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

/// x [O, I] with scales of its rows: of which `ranks` have more columns; null: nobody. A
/// collective.
ops::QuantizedRows quantize_rows_together(const Tensor& x, dist::Group* ranks,
                                          ops::RowFormat format);

}  // namespace vfm::nn

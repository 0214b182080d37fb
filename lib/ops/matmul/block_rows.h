// Matrices whose rows consist of blocks of few-bit codes with scales (base/block_format.h), stored
// as in their file: products y = x W^T (+ b) of few rows of x, and conversion to f32 or bf16.
//
// A product reads W once for all rows, as few_rows.h does, and widens the codes in registers to
// exactly the numbers of dequantize_blocks(). The bits of a row of y do not depend on the other
// rows or on how many there are.
// For inference on the CPU, without a backward pass. On Device::meta the work is counted.
// Shape letters: N rows, I columns, O outputs.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/block_format.h"
#include "tensor/tensor.h"

namespace vfm::ops {

struct BlockRows {
  Tensor bytes;  ///< [O, bytes of a row] u8, at any alignment
  BlockFormat format = BlockFormat::q8_0;

  std::int64_t columns() const {
    const BlockLayout layout = block_layout(format);
    return bytes.size(1) / layout.bytes * layout.elements;
  }
};

/// Returns the numbers that the blocks stand for, [O, I], rounded to `dtype`, f32 or bf16. Throws
/// Error if rows are not whole blocks.
Tensor dequantize_blocks(const BlockRows& rows, DType dtype);

/// Returns x W^T + bias, [N, O] f32, for x [N, I] f32 and bias [O] f32 or undefined. Throws Error
/// for other shapes and types.
Tensor few_rows_of_blocks(const Tensor& x, const BlockRows& w, const Tensor& bias);

}  // namespace vfm::ops

// Matrices whose rows are blocks of few bits with scales of their own (base/block_format.h), as
// they lie in a file: y = x W^T (+ b) of few rows of x, and the numbers that they stand for.
//
// A product reads W once for all rows, as few_rows.h does, and widens it in registers to just the
// numbers of dequantize_blocks(). Row i of y has the same bits whatever other rows there are, and
// however many.
// Inference on the CPU, or on Device::meta, where work is counted; no backward.
// Shape letters: N rows, I columns, O outputs.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/block_format.h"
#include "tensor/tensor.h"

namespace vfm::ops {

struct BlockRows {
  Tensor bytes;  ///< [O, bytes of a row] u8, at any address
  BlockFormat format = BlockFormat::q8_0;

  std::int64_t columns() const {
    const BlockLayout layout = block_layout(format);
    return bytes.size(1) / layout.bytes * layout.elements;
  }
};

/// The numbers of the blocks, rounded to `dtype`, f32 or bf16: [O, I]. Throws Error for rows that
/// are not whole blocks.
Tensor dequantize_blocks(const BlockRows& rows, DType dtype);

/// x [N, I] f32, bias [O] f32 or undefined: [N, O] f32. Throws Error for other shapes and types.
Tensor few_rows_of_blocks(const Tensor& x, const BlockRows& w, const Tensor& bias);

}  // namespace vfm::ops

// Quantises a matrix to 8 bits an element with a scale for each row: half the memory of bf16, a
// quarter of f32. It is for weights that are dequantised just before each product. Unlike products
// in FP8 (quantize.h), it rounds weights alone and runs on any device.
//
//   int8:  scale = max(largest |x| of the row, 2^-40) / 127, code = x / scale, to the nearest
//   E4M3:  scale = max(largest |x| of the row, 2^-40) / 448, code = x / scale (base/float8.h)
//   x is about scale code
//
// The error of a value is at most half a scale with int8. With E4M3 it is at most 2^-4 of the
// value, or 2^-10 of a scale if that is more. For normally distributed rows the root mean square
// error is 0.9 % and 2.6 %. NaN or infinity makes its whole row NaN, so that it is noticed. CPU and
// GPU give the same bits.
// Shape letters: O rows, I columns, P parts of the columns.
// Thread-safety: any thread; on the GPU queued on the compute stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "tensor/tensor.h"

namespace vfm::ops {

enum class RowFormat { int8, e4m3 };
/// Names of formats: "int8", "e4m3". parse_row_format throws Error{usage} for anything else.
std::string_view row_format_name(RowFormat format);
RowFormat parse_row_format(std::string_view name);

struct QuantizedRows {
  Tensor values;  ///< [O, I]: f8e4m3, or u8 with the bits of int8
  Tensor scales;  ///< [O] f32
};

/// Returns the bits of the largest magnitude of each row, [O] i32, for x [O, I], f32 or bf16. As
/// whole numbers the bits are ordered as the values are, with infinity and NaN above all.
Tensor largest_of_rows(const Tensor& x);

/// Quantises x, which may be some columns of a matrix, with the scales of the whole rows. `largest`
/// [P, O], or [O], holds largest_of_rows() of each of the P parts, x among them.
QuantizedRows quantize_rows(const Tensor& x, const Tensor& largest, RowFormat format);

/// Returns scale * code for each element, [O, I], rounded to `dtype`, f32 or bf16.
Tensor dequantize_rows(const QuantizedRows& rows, DType dtype);

}  // namespace vfm::ops

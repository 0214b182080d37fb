// A matrix as numbers of 8 bits with a scale for each row: half the memory of bf16, a quarter of
// f32. For weights that are made numbers of their own type again just before each product, so
// unlike products in FP8 (quantize.h) it rounds weights alone, and runs on any device.
//
//   int8:  scale = max(largest |x| of the row, 2^-40) / 127, code = x / scale, to the nearest
//   E4M3:  scale = max(largest |x| of the row, 2^-40) / 448, code = x / scale (base/float8.h)
//   x ~ scale code
//
// A value is off by at most half a scale with int8; with E4M3 by at most 2^-4 of itself, or 2^-10
// of a scale where that is more. Of normally distributed rows the error is 0.9 % and 2.6 % in the
// mean square. NaN or infinity makes its whole row NaN: nobody may overlook it. CPU and GPU give
// the same bits.
// Shape letters: O rows, I columns, P parts of the columns.
// Thread-safety: any thread; on the GPU queued on the compute stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "tensor/tensor.h"

namespace vfm::ops {

enum class RowFormat { int8, e4m3 };
/// "int8", "e4m3"; parse throws Error{usage} for anything else.
std::string_view row_format_name(RowFormat format);
RowFormat parse_row_format(std::string_view name);

struct QuantizedRows {
  Tensor values;  ///< [O, I]: f8e4m3; or u8, each the bits of a signed number
  Tensor scales;  ///< [O] f32
};

/// Of each row of x [O, I], f32 or bf16, the bits of its largest magnitude, [O] i32: as whole
/// numbers they are ordered as the values are, infinity and NaN above all.
Tensor largest_of_rows(const Tensor& x);

/// x with the scales of the whole rows, of which it may be some columns: `largest` [P, O], or [O],
/// has what largest_of_rows() says of each part, this one among them.
QuantizedRows quantize_rows(const Tensor& x, const Tensor& largest, RowFormat format);

/// scale code of each element, rounded to `dtype`, f32 or bf16: [O, I].
Tensor dequantize_rows(const QuantizedRows& rows, DType dtype);

}  // namespace vfm::ops

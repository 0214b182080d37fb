// Quantises to 8 bits an element: a tensor with one scale, for products in FP8, and a matrix with a
// scale for each row, for weights that are dequantised just before each product.
//
//   E4M3:  scale = max(largest |x|, 2^-40) / 448, code = x / scale, rounded (base/float8.h)
//   int8:  scale = max(largest |x|, 2^-40) / 127, code = x / scale, to the nearest; rows only
//   x is about scale code
//
// A tensor for products in inference is E4M3 with one scale, which every version of cuBLASLt and
// every GPU with FP8 supports. E4M3 has an exponent for each element, with a range of 2^15 between
// its largest and smallest normal values. Finer scales would extend that range, not reduce the
// error of the mantissa, which dominates: at most 2^-4 of a value, 2.6 % root mean square.
// (Measured: a scale for each row of x would lower the error of a trained model by a sixth.)
// Rows take half the memory of bf16, a quarter of f32. They round weights alone and run on any
// device. The error of a value is at most half a scale with int8. With E4M3 it is at most 2^-4 of
// the value, or 2^-10 of a scale if that is more. For normally distributed rows the root mean
// square error is 0.9 % and 2.6 %.
// NaN or infinity makes the scale and all that it scales NaN, so that it is noticed. CPU and GPU
// give the same bits.
// Shape letters: O rows, I columns, P parts of the columns.
// Thread-safety: any thread; on the GPU queued on the compute stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "tensor/tensor.h"

namespace vfm::ops {

struct Quantized {
  Tensor values;  ///< f8e4m3
  Tensor scale;   ///< f32, one element, on the same device
  bool defined() const { return values.defined(); }
};

/// Quantises x of any shape, f32 or bf16. Throws Error for another dtype, and on a GPU without FP8
/// (compute capability below 9.0).
Quantized quantize(const Tensor& x);

/// quantize() of a tensor in parts, one of which is x. largest_magnitude() returns the bits of the
/// largest |x|, [1] i32; 0 if x is empty. As whole numbers the bits are ordered as the values are,
/// with infinity and NaN above all. `largest` [n] holds these numbers of all n parts.
/// quantize_part() returns x with the scale of the whole tensor.
Tensor largest_magnitude(const Tensor& x);
Quantized quantize_part(const Tensor& x, const Tensor& largest);

/// Returns quantize(gelu(x)), bit for bit. The GPU computes gelu(x) twice, once for the largest
/// value and once for the values, and never stores it.
Quantized quantize_gelu(const Tensor& x);

enum class RowFormat { int8, e4m3 };
/// Names of formats: "int8", "e4m3". parse_row_format throws Error{usage} for anything else.
std::string_view row_format_name(RowFormat format);
RowFormat parse_row_format(std::string_view name);

struct QuantizedRows {
  Tensor values;  ///< [O, I]: f8e4m3, or u8 with the bits of int8
  Tensor scales;  ///< [O] f32
};

/// Returns the bits of the largest magnitude of each row, [O] i32, for x [O, I], f32 or bf16;
/// ordered as those of largest_magnitude().
Tensor largest_of_rows(const Tensor& x);

/// Quantises x, which may be some columns of a matrix, with the scales of the whole rows. `largest`
/// [P, O], or [O], holds largest_of_rows() of each of the P parts, x among them.
QuantizedRows quantize_rows(const Tensor& x, const Tensor& largest, RowFormat format);

/// Returns scale * code for each element, [O, I], rounded to `dtype`, f32 or bf16.
Tensor dequantize_rows(const QuantizedRows& rows, DType dtype);

}  // namespace vfm::ops

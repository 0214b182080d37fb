// Quantises a tensor to E4M3, 8 bits an element, with one scale, for FP8 products in inference.
//
//   scale = max(largest |x|, 2^-40) / 448
//   value = x / scale, rounded (base/float8.h), so that x is about scale value
//
// There is one scale per tensor, which every version of cuBLASLt and every GPU with FP8 supports.
// E4M3 has an exponent for each element, with a range of 2^15 between its largest and smallest
// normal values. Finer scales would extend that range, not reduce the error of the mantissa, which
// dominates: at most 2^-4 of a value, 2.6 % root mean square. (Measured: a scale for each row
// of x would lower the error of a trained model by a sixth.) If x has NaN or infinity, the scale
// and all values are NaN, so that it is noticed. CPU and GPU give the same bits.
// Thread-safety: any thread; on the GPU queued on the compute stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace vfm::ops

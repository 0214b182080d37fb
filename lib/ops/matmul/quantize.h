// A tensor as E4M3, 8 bits an element, and one scale: what products in FP8 take, for inference.
//
//   scale = max(largest |x|, 2^-40) / 448, value = x / scale, rounded (base/float8.h); x ~ scale
//   value
//
// One scale a tensor, which every version of cuBLASLt and every GPU with FP8 multiplies with. E4M3
// has an exponent of its own, 2^15 from its largest to its smallest normal value, so a finer cut
// changes the range, not the error of the mantissa, which is what is left: at most 2^-4 of a value,
// 2.6 % in the mean square. (Measured: a scale for each row of x would lower the error of a trained
// model by a sixth.) NaN or infinity in x makes the scale and all values NaN: nobody may overlook
// them. CPU and GPU give the same bits.
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

/// x of any shape, f32 or bf16. Throws Error for another dtype, and on a GPU without FP8 (compute
/// capability below 9.0).
Quantized quantize(const Tensor& x);

/// Of what x is a part of, together with others: the largest |x| of each part, and then x with the
/// scale that quantize() gives all of it.
/// largest_magnitude: its bits, [1] i32, 0 of nothing; as whole numbers they are ordered as the
/// values are, infinity and NaN above all. `largest`: those of all parts, [n].
Tensor largest_magnitude(const Tensor& x);
Quantized quantize_part(const Tensor& x, const Tensor& largest);

/// quantize(gelu(x)), to the bit. On the GPU gelu(x) is computed once for the largest value and
/// once more for the values, from x, and is in no memory.
Quantized quantize_gelu(const Tensor& x);

}  // namespace vfm::ops

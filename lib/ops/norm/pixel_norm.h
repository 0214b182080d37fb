// Root-mean-square norm of each pixel over its channels, optionally followed by SiLU, as before the
// convolutions of Wan's autoencoder.
//
//   n = x / max(|x|, 1e-12) * sqrt(C) * weight    |x|: Euclidean norm of the pixel
//   y = n, or with `silu` n / (1 + exp(-n))
//
// A pixel depends on no other one, so any part of a picture gives the bits of the whole. The result
// goes to a given place, such as behind the frames that a convolution in time looks back at.
// Without gradients, for inference.
// Source: Zhang and Sennrich, "Root mean square layer normalization" (2019).
// Shape letters: C channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/tensor.h"

namespace vfm::ops {

/// x is [..., C], f32 or bf16; y has its shape and dtype and may be x. weight has C elements, f32.
/// Throws Error for tensors that do not fit.
void pixel_norm(const Tensor& x, const Tensor& weight, bool silu, const Tensor& y);

}  // namespace vfm::ops

// The normal distribution, as gelu needs it. Device code only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ptx/fast.cuh>

namespace vfm::kernels {

// What gelu and its slope are made of.
struct Normal {
  float bell;    // e^(-x^2 / 2)
  float beyond;  // Phi(|x|) - 1/2
};

// To 2e-7. Few instructions, or arithmetic and not memory would be the limit; with erff it was.
// Source: Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964), 26.2.17: 1 - Phi(x)
// is e^(-x^2 / 2) / sqrt(2 pi) times a polynomial of 1 / (1 + p x). Here of 1 / (1 / p + x): with
// the coefficients b_k p^-k / sqrt(2 pi).
__device__ __forceinline__ Normal normal(float x) {
  const float bell = fast_exp2(x * x * -0.72134752f);  // log2(e) / 2
  const float t = fast_reciprocal(fabsf(x) + 4.31700828f);
  const float polynomial =
      (((795.729972f * t - 252.355388f) * t + 57.1793427f) * t - 2.65102032f) * t + 0.550050729f;
  return {bell, 0.5f - bell * t * polynomial};
}

// Which product is rounded is said, so that every kernel has the same bits.
__device__ __forceinline__ float gelu(float x, Normal n) {
  return fmaf(0.5f, x, fabsf(x) * n.beyond);
}

}  // namespace vfm::kernels

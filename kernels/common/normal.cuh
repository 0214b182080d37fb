// The normal distribution for gelu. Device code only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ptx/fast.cuh>

namespace vfm::kernels {

// The parts of gelu and its derivative.
struct Normal {
  float bell;    // e^(-x^2 / 2)
  float beyond;  // Phi(|x|) - 1/2
};

// Accurate to 2e-7. It needs few instructions: with erff, arithmetic and not memory was the limit.
// Source: Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964), 26.2.17: 1 - Phi(x)
// is e^(-x^2 / 2) / sqrt(2 pi) times a polynomial of 1 / (1 + p x). Here the polynomial is of
// 1 / (1 / p + x), with the coefficients b_k p^-k / sqrt(2 pi).
__device__ __forceinline__ Normal normal(float x) {
  const float bell = fast_exp2(x * x * -0.72134752f);  // log2(e) / 2
  const float t = fast_reciprocal(fabsf(x) + 4.31700828f);
  const float polynomial =
      (((795.729972f * t - 252.355388f) * t + 57.1793427f) * t - 2.65102032f) * t + 0.550050729f;
  return {bell, 0.5f - bell * t * polynomial};
}

// fmaf fixes which product is rounded, so that every kernel gives the same bits.
__device__ __forceinline__ float gelu(float x, Normal n) {
  return fmaf(0.5f, x, fabsf(x) * n.beyond);
}

}  // namespace vfm::kernels

// e^x, erf and the GELU with tanh for CPU kernels, in plain arithmetic that the compiler
// vectorises. The result of an element does not depend on its place in a row. Include only in
// x_cpu.cc (see ops/cpu/isa.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cpu/simd.h"

namespace vfm::ops::VFM_ISA {

/// e^x to 2 units in the last place; 0 below -87.3, infinity above 88.7.
VFM_INLINE float exp_f(float x) {
  const float n = __builtin_rintf(x * 1.44269504f);
  const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;  // ln 2 in two parts
  float p = 1.98412698e-4f;  // Taylor: |r| <= ln(2)/2, so the next term is below 2^-25
  p = p * r + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.f;
  p = p * r + 1.f;
  const float inside = x < 88.7f ? n : 0.f;  // keeps the conversion defined; NaN lands here too
  const int exponent = static_cast<int>(inside > -126.f ? inside : -126.f);
  const float scale = bits_to_float(static_cast<std::uint32_t>(exponent + 127) << 23);
  const float result = x > -87.3f ? p * scale : 0.f;
  return x < 88.7f ? result : (x >= 88.7f ? __builtin_inff() : x);
}

/// e^x for x <= 0, for softmax; cheaper than exp_f. Slightly positive x is harmless. 0 below -87.
VFM_INLINE Native exp_of_negative(Native x) {
  const Native clamped = x < -87.f ? Native{} - 87.f : x;  // a NaN stays
  // 1.5 * 2^23 added and subtracted rounds to the nearest integer, which then stands in the low
  // bits.
  const Native shifted = clamped * 1.44269504f + 12582912.f;
  const Native n = shifted - 12582912.f;
  const Native r = (clamped - n * 0.693145752f) - n * 1.42860677e-6f;
  Native p = r * 1.38888889e-3f + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.f;
  p = p * r + 1.f;
  const Native result = (Native)((NativeBits)p + ((NativeBits)shifted << 23));
  return x < -87.f ? Native{} : result;
}

/// erf(x) with a relative error of 4e-7: x P(x^2) / Q(x^2), fitted for the least relative error on
/// |x| <= 3.92; beyond that erf rounds to 1.
VFM_INLINE float erf_f(float x) {
  const float a = x < 3.92f ? (x > -3.92f ? x : -3.92f) : 3.92f;
  const float z = a * a;
  float p = 2.050091325e-06f, q = 3.809176633e-05f;
  p = p * z + 2.848829026e-04f;
  q = q * z + 1.162535278e-03f;
  p = p * z + 3.765614005e-03f;
  q = q * z + 1.496921107e-02f;
  p = p * z + 5.274871737e-02f;
  q = q * z + 1.141090766e-01f;
  p = p * z + 1.904063672e-01f;
  q = q * z + 5.020759702e-01f;
  p = p * z + 1.128379107e+00f;
  q = q * z + 1.f;
  const float y = a * p / q;
  const float inside = x > -3.92f ? y : -1.f;
  const float both = x < 3.92f ? inside : 1.f;  // a NaN lands here
  return x == x ? both : x;
}

/// x (1 + tanh(u)) / 2 for u = sqrt(2 / pi) (x + 0.044715 x^3), which is x / (1 + e^-2u).
VFM_INLINE float tanh_gelu_f(float x) {
  const float u2 = 1.59576912f * (x + 0.044715f * x * x * x);
  return x / (1.f + exp_f(-u2));
}

/// Its derivative s + x s (1 - s) 2u', with s = 1 / (1 + e^-2u) and s (1 - s) = e r^2 for
/// e = e^-|2u| and r = 1 / (1 + e), where nothing cancels. Beyond |x| = 100 e is 0, so that x^2 may
/// end there, before it is infinite.
VFM_INLINE float tanh_gelu_slope_f(float x) {
  const float square = x * x < 1e4f ? x * x : 1e4f;
  const float u2 = 1.59576912f * (x + 0.044715f * x * x * x);
  const float e = exp_f(u2 < 0 ? u2 : -u2), r = 1.f / (1.f + e);
  return (u2 < 0 ? e * r : r) + x * (e * r * r) * (1.59576912f * (1.f + 0.134145f * square));
}

}  // namespace vfm::ops::VFM_ISA

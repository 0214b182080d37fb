// Compiled once per instruction set (lib/base/meson.build), into a namespace of that name. So it
// must not include inline functions of external linkage.
// SPDX-License-Identifier: Apache-2.0
#include "base/float_bits.h"
#include "base/normals.h"

namespace vfm::VFM_ISA {
namespace {

constexpr int kLanes = kNormalBlocks;
using Words = std::uint32_t[kLanes];
using Floats = float[kLanes];

/// Philox4x32-10 as in philox.cc, one block per lane.
inline void cipher(Words& c0, Words& c1, Words& c2, Words& c3, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    for (int i = 0; i < kLanes; ++i) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0[i];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c2[i];
      c0[i] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
      c1[i] = static_cast<std::uint32_t>(p1);
      c2[i] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c3[i] = static_cast<std::uint32_t>(p0);
    }
  }
}

/// Returns sqrt(-2 ln u), u = (word + 1/2) / 2^32.
inline float radius(std::uint32_t word) {
  // As a float the smaller of u and 1 - u keeps all bits at both ends, where they matter.
  const bool low = static_cast<std::int32_t>(word) >= 0;
  const auto smaller = static_cast<std::int32_t>(low ? word : ~word);
  const float cell = static_cast<float>(smaller) + 0.5f;
  // Below 1/2: u = y / 2^k, 1/2 <= y < 1. Above: y = u, and 1 - y is known exactly.
  const std::uint32_t bits = float_to_bits(cell);
  const int exponent = static_cast<int>(bits >> 23) - 126;
  const float mantissa = bits_to_float((bits & 0x7fffff) | 0x3f000000);
  const float k = low ? static_cast<float>(32 - exponent) : 0.f;
  const float rest = low ? 1.f - mantissa : cell * 2.3283064365386963e-10f;  // 1 - y
  const float s = rest / (low ? 1.f + mantissa : 2.f - rest);
  // -2 ln y = 4 artanh(s), s = (1 - y) / (1 + y) <= 1/3; the polynomial interpolates
  // 4 artanh(s) / s at Chebyshev's points, to 4e-9.
  const float z = s * s;
  float p = 0.5631555673f;
  p = p * z + 0.5593031549f;
  p = p * z + 0.8004919046f;
  p = p * z + 1.333326433f;
  p = p * z + 4.000000015f;
  return __builtin_sqrtf(k * 1.386294361f + s * p);
}

/// Sets cosine and sine of 2 pi (word + 1/2) / 2^32.
inline void turn(std::uint32_t word, float& cosine, float& sine) {
  // The nearest quarter turn, and the rest of the angle, at most an eighth turn. Both are exact.
  const std::uint32_t quarter = (word + 0x20000000u) >> 30;
  const auto left = static_cast<std::int32_t>(word - (quarter << 30));
  const float x = (static_cast<float>(left) + 0.5f) * 1.4629180792671596e-9f;
  const float z = x * x;
  // Cephes' polynomials for |x| <= pi / 4.
  const float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * x + x;
  const float c =
      ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z -
      0.5f * z + 1.f;
  const bool odd = quarter & 1;
  cosine = bits_to_float(float_to_bits(odd ? s : c) ^ ((quarter + 1) & 2) << 30);
  sine = bits_to_float(float_to_bits(odd ? c : s) ^ (quarter & 2) << 30);
}

inline void box_muller(const Words& a, const Words& b, Floats& first, Floats& second) {
  for (int i = 0; i < kLanes; ++i) {
    float cosine, sine;
    turn(b[i], cosine, sine);
    const float r = radius(a[i]);
    first[i] = r * cosine;
    second[i] = r * sine;
  }
}

}  // namespace

void normal_blocks(std::uint64_t first, const std::uint32_t key[2], const std::uint32_t stream[2],
                   float* out) {
  alignas(64) Words c0, c1, c2, c3;
  for (int i = 0; i < kLanes; ++i) {
    const std::uint64_t block = first + static_cast<std::uint64_t>(i);
    c0[i] = static_cast<std::uint32_t>(block);
    c1[i] = static_cast<std::uint32_t>(block >> 32);
    c2[i] = stream[0];
    c3[i] = stream[1];
  }
  cipher(c0, c1, c2, c3, key[0], key[1]);
  alignas(64) Floats n0, n1, n2, n3;
  box_muller(c0, c1, n0, n1);
  box_muller(c2, c3, n2, n3);
  for (int i = 0; i < kLanes; ++i) {
    out[4 * i] = n0[i];
    out[4 * i + 1] = n1[i];
    out[4 * i + 2] = n2[i];
    out[4 * i + 3] = n3[i];
  }
}

}  // namespace vfm::VFM_ISA

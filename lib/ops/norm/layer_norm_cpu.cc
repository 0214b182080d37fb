// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/row_loops.h"
#include "ops/norm/layer_norm_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

// About the mean. Sums are of distances from the row's first number, so that the large part that
// all have in common is in no sum, and equal numbers have a mean without error.
VFM_INLINE float near_mean(const float* x, std::int64_t n) {
  const float first = x[0];
  const float sum =
      sum_lanes(n, [&](auto v, std::int64_t i) { return load_as<decltype(v)>(x + i) - first; });
  return first + sum / static_cast<float>(n);
}

// The sums of distances from `near`, and of their squares. Of pieces, as else the squares of small
// ones would be lost, each a little, beside one that is large: activations have such columns.
VFM_INLINE TwoSums distances(const float* x, std::int64_t n, float near) {
  constexpr std::int64_t kPiece = 256;
  TwoSums all{0, 0};
  for (std::int64_t begin = 0; begin < n; begin += kPiece) {
    const std::int64_t count = n - begin < kPiece ? n - begin : kPiece;
    const float* const piece = x + begin;
    const TwoSums part = two_sums(count, [&](auto v, std::int64_t i, auto& sum, auto& squares) {
      v = load_as<decltype(v)>(piece + i) - near;
      sum += v;
      squares += v * v;
    });
    all.first += part.first;
    all.second += part.second;
  }
  return all;
}

void normed_row(const LayerNormArgs& a, const float* x, float* y) {
  const float near = near_mean(x, a.width), count = static_cast<float>(a.width);
  const TwoSums sums = distances(x, a.width, near);
  // What near_mean was off, and by how much squares are too large for that.
  const float off = sums.first / count, spread = sums.second / count - off * off;
  const float variance = spread < 0 ? 0.f : spread;  // a NaN stays
  const float r = 1.f / __builtin_sqrtf(variance + a.epsilon);
  for_lanes(a.width, [&](auto v, std::int64_t i) {
    using V = decltype(v);
    v = load_as<V>(x + i) - near - off;
    store(y + i, v * r * load_as<V>(a.weight + i) + load_as<V>(a.bias + i));
  });
}

}  // namespace

void layer_norm_forward(const LayerNormArgs& args) {
  if (args.width == 0) return;
#pragma omp parallel for schedule(static) if (args.rows * args.width > kAlone)
  for (std::int64_t row = 0; row < args.rows; ++row)
    normed_row(args, args.x + row * args.width, args.y + row * args.width);
}

}  // namespace vfm::ops::VFM_ISA

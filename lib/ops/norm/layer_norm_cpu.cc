// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/row_loops.h"
#include "ops/norm/norm_kernels.h"

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

// What a row's numbers lose, in two steps, and are multiplied by.
struct RowMoments {
  float near, off, r;
};
VFM_INLINE RowMoments moments_of(const LayerNormArgs& a, const float* x) {
  const float near = near_mean(x, a.width), count = static_cast<float>(a.width);
  const TwoSums sums = distances(x, a.width, near);
  // What near_mean was off, and by how much squares are too large for that.
  const float off = sums.first / count, spread = sums.second / count - off * off;
  const float variance = spread < 0 ? 0.f : spread;  // a NaN stays
  return {near, off, 1.f / __builtin_sqrtf(variance + a.epsilon)};
}

void normed_row(const LayerNormArgs& a, const float* x, float* y) {
  // Lambdas do not capture structured bindings with every compiler.
  const RowMoments m = moments_of(a, x);
  const float near = m.near, off = m.off, r = m.r;
  for_lanes(a.width, [&](auto v, std::int64_t i) {
    using V = decltype(v);
    v = load_as<V>(x + i) - near - off;
    store(y + i, v * r * load_as<V>(a.weight + i) + load_as<V>(a.bias + i));
  });
}

// With n the normed x and g = dy weight: dx = r (g - mean(g) - n mean(g n)). Adds dy n and dy to
// `sums` [2, width], if there are any.
void row_back(const LayerNormArgs& a, const float* x, const float* dy, float* dx, float* sums) {
  const RowMoments m = moments_of(a, x);
  const float near = m.near, off = m.off, r = m.r;
  const TwoSums means = two_sums(a.width, [&](auto v, std::int64_t i, auto& sum, auto& products) {
    using V = decltype(v);
    v = load_as<V>(dy + i) * load_as<V>(a.weight + i);
    sum += v;
    products += v * ((load_as<V>(x + i) - near - off) * r);
  });
  const float count = static_cast<float>(a.width);
  const float mean = means.first / count, product = means.second / count;
  float* const biases = sums == nullptr ? nullptr : sums + a.width;
  for_lanes(a.width, [&](auto v, std::int64_t i) {
    using V = decltype(v);
    const V n = (load_as<V>(x + i) - near - off) * r, g = load_as<V>(dy + i);
    if (sums != nullptr) {
      store(sums + i, load_as<V>(sums + i) + g * n);
      store(biases + i, load_as<V>(biases + i) + g);
    }
    store(dx + i, r * (g * load_as<V>(a.weight + i) - mean - n * product));
  });
}

}  // namespace

void layer_norm_backward(const LayerNormArgs& args) {
  if (args.width == 0) return;
  const std::int64_t chunks = (args.rows + kLayerNormChunk - 1) / kLayerNormChunk;
  const std::int64_t both = 2 * args.width;
#pragma omp parallel for schedule(static) if (args.rows * args.width > kAlone)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    float* const sums = args.dboth == nullptr ? nullptr : args.partial + chunk * both;
    for (std::int64_t i = 0; sums != nullptr && i < both; ++i)
      sums[i] = 0;
    const std::int64_t begin = chunk * kLayerNormChunk;
    const std::int64_t end =
        begin + kLayerNormChunk < args.rows ? begin + kLayerNormChunk : args.rows;
    for (std::int64_t at = begin * args.width; at < end * args.width; at += args.width)
      row_back(args, args.x + at, args.dy + at, args.dx + at, sums);
  }
  if (args.dboth == nullptr) return;
  for (std::int64_t i = 0; i < both; ++i)
    args.dboth[i] = 0;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    for (std::int64_t i = 0; i < both; ++i)
      args.dboth[i] += args.partial[chunk * both + i];
}

void layer_norm_forward(const LayerNormArgs& args) {
  if (args.width == 0) return;
#pragma omp parallel for schedule(static) if (args.rows * args.width > kAlone)
  for (std::int64_t row = 0; row < args.rows; ++row)
    normed_row(args, args.x + row * args.width, args.y + row * args.width);
}

}  // namespace vfm::ops::VFM_ISA

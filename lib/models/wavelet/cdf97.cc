// SPDX-License-Identifier: Apache-2.0
#include "models/wavelet/cdf97.h"

#include <algorithm>
#include <cstddef>

namespace vfm::models {
namespace {

// ITU-T T.800, table F.4.
constexpr float kAlpha = -1.586134342059924f, kBeta = -0.052980118572961f;
constexpr float kGamma = 0.882911075530934f, kDelta = 0.443506852043971f;
constexpr float kGain = 1.230174104914001f;

/// target += c * (left + right).
void lift(float* __restrict target, const float* left, const float* right, float c, int columns) {
  for (int x = 0; x < columns; ++x)
    target[x] += c * (left[x] + right[x]);
}

/// One lifting step over all rows. Odd rows lie between even rows i and i + 1, even rows between
/// odd rows i - 1 and i; beyond the border stands the row's mirror image, its other neighbour.
void lift_odd(float* even, float* odd, float c, int half, std::size_t columns) {
  for (int i = 0; i < half; ++i)
    lift(odd + i * columns, even + i * columns, even + std::min(i + 1, half - 1) * columns, c,
         static_cast<int>(columns));
}
void lift_even(float* even, float* odd, float c, int half, std::size_t columns) {
  for (int i = 0; i < half; ++i)
    lift(even + i * columns, odd + i * columns, odd + std::max(i - 1, 0) * columns, c,
         static_cast<int>(columns));
}
void scale(float* values, std::size_t n, float factor) {
  for (std::size_t i = 0; i < n; ++i)
    values[i] *= factor;
}

void transpose(const float* in, float* out, int rows, int columns) {
  constexpr int kTile = 16;
  for (int y0 = 0; y0 < rows; y0 += kTile)
    for (int x0 = 0; x0 < columns; x0 += kTile)
      for (int y = y0; y < std::min(rows, y0 + kTile); ++y)
        for (int x = x0; x < std::min(columns, x0 + kTile); ++x)
          out[std::size_t(x) * rows + y] = in[std::size_t(y) * columns + x];
}

/// Copies the top left rows x columns of a plane of row length `stride`, or puts it back.
void copy_block(const float* from, std::size_t from_stride, float* to, std::size_t to_stride,
                int rows, int columns) {
  for (int y = 0; y < rows; ++y)
    std::copy_n(from + y * from_stride, columns, to + y * to_stride);
}

}  // namespace

void cdf97_analyse(const float* in, float* out, int rows, int columns) {
  const int half = rows / 2;
  const auto row = static_cast<std::size_t>(columns);
  float *const even = out, *const odd = out + half * row;
  for (int i = 0; i < half; ++i) {
    std::copy_n(in + 2 * i * row, row, even + i * row);
    std::copy_n(in + (2 * i + 1) * row, row, odd + i * row);
  }
  lift_odd(even, odd, kAlpha, half, row);
  lift_even(even, odd, kBeta, half, row);
  lift_odd(even, odd, kGamma, half, row);
  lift_even(even, odd, kDelta, half, row);
  scale(even, half * row, 1 / kGain);
  scale(odd, half * row, kGain / 2);
}

void cdf97_synthesise(float* in, float* out, int rows, int columns) {
  const int half = rows / 2;
  const auto row = static_cast<std::size_t>(columns);
  float *const even = in, *const odd = in + half * row;
  scale(even, half * row, kGain);
  scale(odd, half * row, 2 / kGain);
  lift_even(even, odd, -kDelta, half, row);
  lift_odd(even, odd, -kGamma, half, row);
  lift_even(even, odd, -kBeta, half, row);
  lift_odd(even, odd, -kAlpha, half, row);
  for (int i = 0; i < half; ++i) {
    std::copy_n(even + i * row, row, out + 2 * i * row);
    std::copy_n(odd + i * row, row, out + (2 * i + 1) * row);
  }
}

PlaneTransform::PlaneTransform(int height, int width, int levels, float* room)
    : height_(height),
      width_(width),
      levels_(levels),
      a_(room),
      b_(room + std::size_t(height) * width) {}

void PlaneTransform::analyse(float* plane) {
  float *const a = a_, *const b = b_;
  for (int level = 0; level < levels_; ++level) {
    const int h = height_ >> level, w = width_ >> level;
    copy_block(plane, width_, a, w, h, w);
    cdf97_analyse(a, b, h, w);
    transpose(b, a, h, w);
    cdf97_analyse(a, b, w, h);
    transpose(b, a, w, h);
    copy_block(a, w, plane, width_, h, w);
  }
}

void PlaneTransform::synthesise(float* plane) {
  float *const a = a_, *const b = b_;
  for (int level = levels_ - 1; level >= 0; --level) {
    const int h = height_ >> level, w = width_ >> level;
    copy_block(plane, width_, a, w, h, w);
    transpose(a, b, h, w);
    cdf97_synthesise(b, a, w, h);
    transpose(a, b, w, h);
    cdf97_synthesise(b, a, h, w);
    copy_block(a, w, plane, width_, h, w);
  }
}

}  // namespace vfm::models

// SPDX-License-Identifier: Apache-2.0
#include "curate/measures/motion.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace vfm::curate {
namespace {

constexpr int kSize = kLumaSide / kBlocks;  // side of a block, in cells
constexpr int kReach = 8;                   // longest vector along x or y, in cells
constexpr int kStray = 8;                   // cost, in SAD, of a cell away from the prediction
constexpr int kGoodEnough = 96;             // block SAD (1.5 per cell) that ends the search
constexpr int kBad = 640;                   // block SAD (10 per cell) that starts the full search

/// Returns the sum of absolute differences (SAD) of two blocks.
int block_difference(const std::uint8_t* a, const std::uint8_t* b) {
#if defined(__SSE2__)
  __m128i sum = _mm_setzero_si128();
  for (int row = 0; row < kSize; row += 2) {
    const auto rows = [row](const std::uint8_t* p) {
      const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + row * kLumaSide));
      const __m128i high =
          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + (row + 1) * kLumaSide));
      return _mm_unpacklo_epi64(low, high);
    };
    sum = _mm_add_epi64(sum, _mm_sad_epu8(rows(a), rows(b)));
  }
  return _mm_cvtsi128_si32(sum) + _mm_cvtsi128_si32(_mm_srli_si128(sum, 8));
#else
  int sum = 0;
  for (int row = 0; row < kSize; ++row)
    for (int x = 0; x < kSize; ++x)
      sum += std::abs(a[row * kLumaSide + x] - b[row * kLumaSide + x]);
  return sum;
#endif
}

int chroma_difference(const std::uint8_t* a, const std::uint8_t* b) {
  int sum = 0;
  for (int row = 0; row < kSize / 2; ++row)
    for (int x = 0; x < kSize / 2; ++x)
      sum += std::abs(a[row * kChromaSide + x] - b[row * kChromaSide + x]);
  return sum;
}

struct Search {
  const std::uint8_t* before;  // luma of the whole picture
  const std::uint8_t* block;   // luma in the later picture
  int left, top;               // of the block, in cells
  int predicted_x = 0, predicted_y = 0;
  int x = 0, y = 0;
  int difference = 0, cost = 0;

  bool inside(int dx, int dy) const {
    return std::abs(dx) <= kReach && std::abs(dy) <= kReach && left - dx >= 0 && top - dy >= 0 &&
           left - dx + kSize <= kLumaSide && top - dy + kSize <= kLumaSide;
  }
  int difference_at(int dx, int dy) const {
    return block_difference(before + (top - dy) * kLumaSide + left - dx, block);
  }
  void try_vector(int dx, int dy) {
    if (!inside(dx, dy)) return;
    const int d = difference_at(dx, dy);
    const int stray = std::min(std::abs(dx) + std::abs(dy),
                               std::abs(dx - predicted_x) + std::abs(dy - predicted_y));
    if (d + kStray * stray < cost) x = dx, y = dy, difference = d, cost = d + kStray * stray;
  }
  /// Moves to the best of the eight neighbours until none is better.
  void descend() {
    for (int step = 0; step < kReach; ++step) {
      const int x0 = x, y0 = y;
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
          if (dx != 0 || dy != 0) try_vector(x0 + dx, y0 + dy);
      if (x == x0 && y == y0) return;
    }
  }
  void search_everywhere() {
    for (int dy = -kReach; dy <= kReach; ++dy)
      for (int dx = -kReach; dx <= kReach; ++dx)
        try_vector(dx, dy);
  }
  /// Returns the minimum of a parabola through the differences at -1, 0 and +1.
  static float vertex(int minus, int centre, int plus) {
    const int curvature = minus - 2 * centre + plus;
    if (curvature <= 0) return 0;
    return std::clamp(0.5f * static_cast<float>(minus - plus) / static_cast<float>(curvature),
                      -0.5f, 0.5f);
  }
  /// If a block fits without motion, its differences are noise and the block is at rest.
  MotionVector refined() const {
    if (x == 0 && y == 0 && difference <= kGoodEnough / 2) return {};
    MotionVector v{static_cast<float>(x), static_cast<float>(y)};
    if (inside(x - 1, y) && inside(x + 1, y))
      v.x += vertex(difference_at(x - 1, y), difference, difference_at(x + 1, y));
    if (inside(x, y - 1) && inside(x, y + 1))
      v.y += vertex(difference_at(x, y - 1), difference, difference_at(x, y + 1));
    return v;
  }
};

}  // namespace

const MotionField& MotionEstimator::estimate(const SmallPicture& before,
                                             const SmallPicture& after) {
  long at_rest = 0, moved = 0;
  for (int by = 0; by < kBlocks; ++by) {
    for (int bx = 0; bx < kBlocks; ++bx) {
      const int b = by * kBlocks + bx;
      const int left = bx * kSize, top = by * kSize;
      Search s{before.y.data(), after.y.data() + top * kLumaSide + left, left, top};
      s.difference = s.cost = s.difference_at(0, 0);
      const int chroma_at = top / 2 * kChromaSide + left / 2;
      const auto chroma_from = [&](int dx, int dy) {
        const int from = chroma_at - dy / 2 * kChromaSide - dx / 2;
        return chroma_difference(before.u.data() + from, after.u.data() + chroma_at) +
               chroma_difference(before.v.data() + from, after.v.data() + chroma_at);
      };
      const int chroma = chroma_from(0, 0);
      at_rest += s.difference + 4 * chroma;
      if (s.difference > kGoodEnough / 2) {
        const Cell last = cells_[b];  // vector of the last pair
        if (bx > 0)
          s.predicted_x = cells_[b - 1].x, s.predicted_y = cells_[b - 1].y;
        else if (by > 0)
          s.predicted_x = cells_[b - kBlocks].x, s.predicted_y = cells_[b - kBlocks].y;
        s.try_vector(s.predicted_x, s.predicted_y);
        if (by > 0) s.try_vector(cells_[b - kBlocks].x, cells_[b - kBlocks].y);
        s.try_vector(last.x, last.y);
        if (s.difference > kGoodEnough) s.descend();
        if (s.difference > kBad) s.search_everywhere();
      }
      cells_[b] = {s.x, s.y};
      field_.vectors[b] = s.refined();
      moved += s.difference + 4 * std::min(chroma, chroma_from(s.x, s.y));
    }
  }
  field_.difference = static_cast<float>(at_rest) / kLumaCells;
  field_.residual = static_cast<float>(moved) / kLumaCells;
  return field_;
}

}  // namespace vfm::curate

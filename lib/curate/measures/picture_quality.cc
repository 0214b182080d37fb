// SPDX-License-Identifier: Apache-2.0
#include "curate/measures/picture_quality.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace vfm::curate {
namespace {

constexpr int kRowStep = 5;      // odd, to measure both fields
constexpr int kBandStep = 8;     // from a measured row or column to the next
constexpr int kRowPiece = 2048;  // pixels whose sum of squared Laplacians fits an int
constexpr int kBand = 8;         // minimum length of a run
constexpr int kBandStepMost = 3;
constexpr int kCodedBlock = 8;

struct Moments2 {
  std::int64_t n = 0, sum = 0, squares = 0;
  double variance() const {
    if (n == 0) return 0;
    const double mean = static_cast<double>(sum) / static_cast<double>(n);
    return std::max(0.0, static_cast<double>(squares) / static_cast<double>(n) - mean * mean);
  }
  void add(const std::int16_t* values, int count) {
    int total = 0, products = 0;
    for (int i = 0; i < count; ++i)
      total += values[i], products += values[i] * values[i];
    n += count, sum += total, squares += products;
  }
};

void add_detail(const LumaPlane& plane, int y, int left, int right, Moments2& laplacian,
                Moments2& luma) {
  std::array<std::int16_t, kRowPiece> l, p;
  for (int from = left; from < right; from += kRowPiece) {
    const int count = std::min(kRowPiece, right - from);
    const std::uint8_t *a = plane.row(y - 1) + from, *b = plane.row(y) + from,
                       *c = plane.row(y + 1) + from;
    for (int i = 0; i < count; ++i) {
      p[static_cast<std::size_t>(i)] = b[i];
      l[static_cast<std::size_t>(i)] =
          static_cast<std::int16_t>(4 * b[i] - a[i] - c[i] - b[i - 1] - b[i + 1]);
    }
    laplacian.add(l.data(), count);
    luma.add(p.data(), count);
  }
}

int count_combed(const LumaPlane& plane, int y, int left, int right, int threshold) {
  const std::uint8_t *d = plane.row(y - 2), *a = plane.row(y - 1), *b = plane.row(y),
                     *c = plane.row(y + 1), *e = plane.row(y + 2);
  int count = 0;
  for (int x = left; x < right; ++x) {
    const int up = a[x] - b[x], down = c[x] - b[x];
    const bool apart = (std::min(up, down) > threshold) | (std::max(up, down) < -threshold);
    const bool alike = (std::abs(up - down) < threshold) & (std::abs(b[x] - d[x]) < threshold) &
                       (std::abs(b[x] - e[x]) < threshold);
    count += apart & alike;
  }
  return count;
}

double measure_blocks(const LumaPlane& plane, const PixelArea& area) {
  std::array<std::int64_t, 2> sum{}, count{};  // inside, across
  const int first = (area.left + kCodedBlock) / kCodedBlock *
                    kCodedBlock;  // the first edge with a left neighbour
  for (int y = area.top; y < area.bottom; y += kRowStep) {
    const std::uint8_t* p = plane.row(y);
    std::array<unsigned, kCodedBlock> row{};
    int blocks = 0;
    for (int x = first; x + kCodedBlock <= area.right; x += kCodedBlock, ++blocks)
      for (int i = 0; i < kCodedBlock; ++i)
        row[static_cast<std::size_t>(i)] +=
            static_cast<unsigned>(std::abs(p[x + i] - p[x + i - 1]));
    for (std::size_t i = 0; i < kCodedBlock; ++i)
      sum[i == 0] += row[i];
    count[0] += blocks * (kCodedBlock - 1), count[1] += blocks;
  }
  // Along columns, compare at each edge and at one place inside each block.
  const auto across = [&](int y, bool edge) {
    if (y <= area.top || y >= area.bottom) return;
    const std::uint8_t *a = plane.row(y - 1), *b = plane.row(y);
    unsigned total = 0;
    for (int x = area.left; x < area.right; ++x)
      total += static_cast<unsigned>(std::abs(a[x] - b[x]));
    sum[edge] += total, count[edge] += area.width();
  };
  for (int y = area.top / kCodedBlock * kCodedBlock; y < area.bottom; y += kCodedBlock) {
    across(y, true);
    across(y + 1 + y / kCodedBlock % (kCodedBlock - 1), false);
  }
  const auto mean = [&](int which) {
    const auto i = static_cast<std::size_t>(which);
    return count[i] > 0 ? static_cast<double>(sum[i]) / static_cast<double>(count[i]) : 0.0;
  };
  return (mean(1) + 0.25) / (mean(0) + 0.25);
}

/// Counts the pixels in bands along a row or column.
class BandScan {
 public:
  void add(std::uint8_t level) {
    if (length_ > 0 && level == level_) {
      ++length_;
      return;
    }
    end_run(level);
    level_ = level, length_ = 1;
  }
  std::int64_t pixels() const { return pixels_; }

 private:
  /// Counts a band when the next run ends, because the next run must be long enough, too.
  void end_run(int next) {
    if (length_ >= kBand) {
      if (middle_ > 0 && step_ * before_ > 0) pixels_ += middle_;
      const bool small = std::abs(step_) <= kBandStepMost && step_ != 0;
      middle_ = small ? length_ : 0;
      before_ = step_;
    } else {
      middle_ = 0;
    }
    step_ = length_ >= kBand ? next - level_ : 0;
    if (std::abs(step_) > kBandStepMost) step_ = 0, middle_ = 0;
  }
  int level_ = 0, length_ = 0;
  int step_ = 0;    // level step from the last run to this run, or 0
  int before_ = 0;  // level step to the last run, or 0
  int middle_ = 0;  // length of the last run if it may be a band
  std::int64_t pixels_ = 0;
};

double measure_bands(const LumaPlane& plane, const PixelArea& area) {
  std::int64_t along = 0, seen = 0;
  for (int y = area.top + kBandStep / 2; y < area.bottom; y += kBandStep) {
    const std::uint8_t* p = plane.row(y);
    BandScan scan;
    for (int x = area.left; x < area.right; ++x)
      scan.add(p[x]);
    along += scan.pixels(), seen += area.width();
  }
  const int columns = (area.width() - kBandStep / 2 + kBandStep - 1) / kBandStep;
  std::vector<BandScan> scans(static_cast<std::size_t>(std::max(columns, 0)));
  for (int y = area.top; y < area.bottom; ++y) {
    const std::uint8_t* p = plane.row(y) + area.left + kBandStep / 2;
    for (BandScan& scan : scans)
      scan.add(*p), p += kBandStep;
  }
  std::int64_t down = 0;
  for (const BandScan& scan : scans)
    down += scan.pixels();
  const double rows = seen > 0 ? static_cast<double>(along) / static_cast<double>(seen) : 0;
  const double all = static_cast<double>(columns) * area.height();
  return std::max(rows, all > 0 ? static_cast<double>(down) / all : 0.0);
}

}  // namespace

PictureQuality measure_quality(const LumaPlane& plane, const PixelArea& area) {
  PictureQuality q;
  const int black = plane.full_range ? 0 : 16, white = plane.full_range ? 255 : 235;
  const int low = black + plane.levels(2), high = white - plane.levels(2);
  const int threshold = plane.levels(12);
  Moments2 laplacian, luma;
  std::int64_t dark = 0, light = 0, combed = 0;
  const int left = std::max(area.left, 1), right = std::min(area.right, plane.width - 1);
  const int bottom = std::min(area.bottom, plane.height - 2);
  for (int y = std::max(area.top, 2); y < bottom; y += kRowStep) {
    add_detail(plane, y, left, right, laplacian, luma);
    const std::uint8_t* p = plane.row(y);
    int below = 0, above = 0;
    for (int x = left; x < right; ++x)
      below += p[x] <= low, above += p[x] >= high;
    dark += below, light += above;
    combed += count_combed(plane, y, left, right, threshold);
  }
  if (luma.n > 0) {
    const auto n = static_cast<double>(luma.n);
    const double variance = luma.variance();
    q.focus = variance > 0 ? std::sqrt(laplacian.variance() / (20 * variance)) : 0;
    q.underexposed = static_cast<double>(dark) / n;
    q.overexposed = static_cast<double>(light) / n;
    q.combing = static_cast<double>(combed) / n;
  }
  q.blockiness = measure_blocks(plane, area);
  q.banding = measure_bands(plane, area);
  return q;
}

}  // namespace vfm::curate

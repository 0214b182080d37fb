// SPDX-License-Identifier: Apache-2.0
#include "curate/vectors/sketch_cells.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "base/stop.h"
#include "share/ordered.h"

namespace vfm::curate {
namespace {

constexpr int kCellRounds = 3;
constexpr std::size_t kAssignedAtOnce = 1024;                  // sketches that a thread takes
constexpr double kUnit = double{kSketchScale} * kSketchScale;  // product of a sketch with itself
// Largest difference of the distances of two sketches and of their vectors, by rounding.
constexpr double kRounded = 1e-3;

}  // namespace

void SketchCells::fill_tiles() {
  const std::size_t tile = width_ * kTileSide;
  tiles_.resize((count_ + kTileSide - 1) / kTileSide * tile);
  for (std::size_t first = 0; first < count_; first += kTileSide) {
    const std::int16_t* some[kTileSide];
    const std::size_t n = std::min(kTileSide, count_ - first);
    for (std::size_t j = 0; j < n; ++j)
      some[j] = &centres_[(first + j) * width_];
    fill_tile(some, n, width_, &tiles_[first / kTileSide * tile]);
  }
}

void SketchCells::mark_repeats() {
  const auto centre = [&](std::uint32_t c) { return std::span(&centres_[c * width_], width_); };
  std::vector<std::uint32_t> order(count_);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const auto x = centre(a), y = centre(b);
    if (std::ranges::equal(x, y)) return a < b;
    return std::ranges::lexicographical_compare(x, y);
  });
  repeats_.assign(count_, false);
  for (std::size_t i = 1; i < count_; ++i)
    repeats_[order[i]] = std::ranges::equal(centre(order[i]), centre(order[i - 1]));
}

SketchCells SketchCells::find(const std::vector<std::int16_t>& sample, std::size_t width,
                              std::size_t wanted, share::Slots& slots) {
  const std::size_t n = sample.size() / width;
  SketchCells cells(width, std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(1, n)));
  cells.centres_.resize(cells.count_ * width);
  for (std::size_t c = 0; c < cells.count_ && n > 0; ++c)
    std::copy_n(&sample[c * n / cells.count_ * width], width, &cells.centres_[c * width]);
  cells.fill_tiles();
  for (int round = 0; round < kCellRounds; ++round) {
    std::vector<std::uint32_t> own(n);
    std::size_t next = 0;
    share::for_each_ordered<std::size_t, bool>(
        slots,
        [&]() -> std::optional<std::size_t> {
          if (next >= n) return std::nullopt;
          return std::exchange(next, next + kAssignedAtOnce);
        },
        [&](std::size_t& first) {
          check_stop();
          cells.nearest(&sample[first * width], std::min(kAssignedAtOnce, n - first), &own[first]);
          return true;
        },
        [](bool&) {});
    std::vector<std::int64_t> sums(cells.count_ * width);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t p = 0; p < width; ++p)
        sums[own[i] * width + p] += sample[i * width + p];
    for (std::size_t c = 0; c < cells.count_; ++c) {
      double length = 0;
      for (std::size_t p = 0; p < width; ++p)
        length += std::pow(static_cast<double>(sums[c * width + p]), 2);
      if (length <= 0) continue;  // the centre of an empty cell stays
      for (std::size_t p = 0; p < width; ++p)
        cells.centres_[c * width + p] = static_cast<std::int16_t>(std::lround(
            static_cast<double>(sums[c * width + p]) / std::sqrt(length) * kSketchScale));
    }
    cells.fill_tiles();
  }
  cells.mark_repeats();
  return cells;
}

/// Writes 4 x count() products with centres.
void SketchCells::scores(const std::int16_t* const* four, std::vector<std::int32_t>& out) const {
  out.resize(4 * count_);
  TileProducts products;
  for (std::size_t first = 0; first < count_; first += kTileSide) {
    tile_products(four, width_, &tiles_[first * width_], products);
    for (std::size_t r = 0; r < 4; ++r)
      std::copy_n(products[r], std::min(kTileSide, count_ - first), &out[r * count_ + first]);
  }
}

void SketchCells::nearest(const std::int16_t* sketches, std::size_t n, std::uint32_t* cells) const {
  std::vector<std::int32_t> all;
  for (std::size_t i = 0; i < n; i += 4) {
    const std::int16_t* four[4];
    for (std::size_t r = 0; r < 4; ++r)
      four[r] = sketches + std::min(i + r, n - 1) * width_;
    scores(four, all);
    for (std::size_t r = 0; r < 4 && i + r < n; ++r) {
      const std::int32_t* own = &all[r * count_];
      cells[i + r] = static_cast<std::uint32_t>(std::max_element(own, own + count_) - own);
    }
  }
}

void SketchCells::near(const std::int16_t* const* four, const Reach& reach, Near (&out)[4]) const {
  std::vector<std::int32_t> all;
  scores(four, all);
  const double far = reach.margin * (reach.distance + kRounded);
  const auto apart = [](double product) {
    return std::sqrt(std::max(0.0, 2 - 2 * product / kUnit)) + kRounded;
  };
  std::vector<std::pair<double, std::uint32_t>> found;  // distance of the border, cell
  for (std::size_t r = 0; r < 4; ++r) {
    const std::int32_t* score = &all[r * count_];
    const auto own = static_cast<std::uint32_t>(std::max_element(score, score + count_) - score);
    // If its border is within reach, a centre e scores at least best - far * |e - c|, and |e - c|
    // is at most the way over the sketch. The second round tightens this limit.
    const double best = score[own];
    double lacks = 2 * far;
    for (int time = 0; time < 2; ++time)
      lacks = std::min(lacks, far * (apart(best) + apart(best - lacks * kUnit)));
    const double least = best - lacks * kUnit;
    found.clear();
    for (std::uint32_t c = 0; c < count_; ++c) {
      if (score[c] < least || c == own || repeats_[c]) continue;
      const double between =
          apart(sketch_product(&centres_[own * width_], &centres_[c * width_], width_));
      const double border = (best - score[c]) / kUnit / between;
      if (border <= far) found.emplace_back(border, c);
    }
    out[r].all = found.size() < reach.most;
    const std::size_t some = std::min(found.size(), std::max<std::size_t>(reach.most, 1) - 1);
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(some),
                      found.end());
    out[r].cells.assign(1, own);
    for (std::size_t i = 0; i < some; ++i)
      out[r].cells.push_back(found[i].second);
  }
}

}  // namespace vfm::curate

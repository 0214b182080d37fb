// SPDX-License-Identifier: Apache-2.0
#include "curate/copies/crop_sampler.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace vfm::curate {
namespace {

struct PairSums {
  double n = 0, a = 0, b = 0, aa = 0, bb = 0, ab = 0;

  void add(double x, double y) {
    n += 1;
    a += x;
    b += y;
    aa += x * x;
    bb += y * y;
    ab += x * y;
  }
  double variance_a() const { return std::max(0.0, aa / n - a / n * (a / n)); }
  double variance_b() const { return std::max(0.0, bb / n - b / n * (b / n)); }
  double covariance() const { return ab / n - a / n * (b / n); }
};

}  // namespace

CropSampler::Side CropSampler::side_of(double low, double high) {
  Side side;
  side.begin = kSignatureSide;
  for (int i = 0; i < kSignatureSide; ++i) {
    const double place = (low + (i + 0.5) / kSignatureSide * (high - low)) * kSignatureSide - 0.5;
    if (place < -0.5 || place > kSignatureSide - 0.5) continue;
    const double inside = std::clamp(place, 0.0, kSignatureSide - 1.0);
    const int cell = std::min(static_cast<int>(inside), kSignatureSide - 2);
    side.taps[static_cast<std::size_t>(i)] = {cell, static_cast<float>(inside - cell)};
    side.begin = std::min(side.begin, i);
    side.end = i + 1;
  }
  return side;
}

std::optional<CropSampler> CropSampler::of(const CropWindow& crop) {
  constexpr double kLeast = 1 / 1.7, kMost = 1.7, kLeastArea = 0.4;
  const double width = crop.right - crop.left, height = crop.bottom - crop.top;
  if (width < kLeast || width > kMost || height < kLeast || height > kMost) return std::nullopt;
  CropSampler sampler;
  sampler.across_ = side_of(crop.left, crop.right);
  sampler.down_ = side_of(crop.top, crop.bottom);
  const int cells = std::max(0, sampler.across_.end - sampler.across_.begin) *
                    std::max(0, sampler.down_.end - sampler.down_.begin);
  if (cells < kLeastArea * kSignatureSide * kSignatureSide) return std::nullopt;
  return sampler;
}

template <class Picture>
void CropSampler::sample(const Picture& first, ChangePicture& out) const {
  const auto at = [&](int y, int x) {
    return static_cast<float>(first[static_cast<std::size_t>(y * kSignatureSide + x)]);
  };
  for (int y = down_.begin; y < down_.end; ++y) {
    const Tap& tap = down_.taps[static_cast<std::size_t>(y)];
    std::array<float, kSignatureSide> row;
    for (int x = 0; x < kSignatureSide; ++x)
      row[static_cast<std::size_t>(x)] =
          at(tap.cell, x) + tap.part * (at(tap.cell + 1, x) - at(tap.cell, x));
    for (int x = across_.begin; x < across_.end; ++x) {
      const Tap& to = across_.taps[static_cast<std::size_t>(x)];
      const float left = row[static_cast<std::size_t>(to.cell)];
      out[static_cast<std::size_t>(y * kSignatureSide + x)] =
          left + to.part * (row[static_cast<std::size_t>(to.cell) + 1] - left);
    }
  }
}

Correlation CropSampler::correlate(const ChangePicture& first, const ChangePicture& second) const {
  ChangePicture sampled;
  sample(first, sampled);
  PairSums sums;
  for (int y = down_.begin; y < down_.end; ++y) {
    float a = 0, b = 0, aa = 0, bb = 0, ab = 0;
    for (int x = across_.begin; x < across_.end; ++x) {
      const auto i = static_cast<std::size_t>(y * kSignatureSide + x);
      const float p = sampled[i], q = second[i];
      a += p, b += q, aa += p * p, bb += q * q, ab += p * q;
    }
    sums.a += a, sums.b += b, sums.aa += aa, sums.bb += bb, sums.ab += ab;
  }
  sums.n = static_cast<double>(down_.end - down_.begin) * (across_.end - across_.begin);
  const double product = sums.variance_a() * sums.variance_b();
  return {product > 0 ? sums.covariance() / std::sqrt(product) : 0, std::sqrt(sums.variance_a()),
          std::sqrt(sums.variance_b())};
}

double CropSampler::correlate_pictures(const SignaturePicture& first,
                                       const SignaturePicture& second, double noise) const {
  ChangePicture sampled;
  sample(first, sampled);
  PairSums all;
  std::vector<std::pair<float, float>> cells;
  for (int y = down_.begin; y < down_.end; ++y)
    for (int x = across_.begin; x < across_.end; ++x) {
      const auto i = static_cast<std::size_t>(y * kSignatureSide + x);
      const auto [a, b] =
          cells.emplace_back(sampled[i] / kLevelParts, static_cast<float>(second[i]) / kLevelParts);
      all.add(a, b);
    }
  const double slope = (all.covariance() + noise) / (all.variance_a() + noise);
  const auto distance = [&](const std::pair<float, float>& cell) {
    return std::abs((cell.second - all.b / all.n) - slope * (cell.first - all.a / all.n));
  };
  const auto kept = static_cast<std::ptrdiff_t>(cells.size() - cells.size() / 10);
  std::nth_element(cells.begin(), cells.begin() + kept, cells.end(),
                   [&](const auto& p, const auto& q) { return distance(p) < distance(q); });
  PairSums rest;
  for (std::ptrdiff_t i = 0; i < kept; ++i)
    rest.add(cells[static_cast<std::size_t>(i)].first, cells[static_cast<std::size_t>(i)].second);
  const double variances = (rest.variance_a() + noise) * (rest.variance_b() + noise);
  return std::clamp((rest.covariance() + noise) / std::sqrt(variances), 0.0, 1.0);
}

}  // namespace vfm::curate

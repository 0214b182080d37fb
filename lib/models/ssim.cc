// Shape letters: T frames, H rows, W columns.
// SPDX-License-Identifier: Apache-2.0
#include "models/ssim.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace vfm::models {
namespace {

constexpr double kSigma = 1.5, kC1 = 1e-4, kC2 = 9e-4;

/// A picture of numbers, row by row.
struct Plane {
  std::size_t height, width;
  std::vector<double> values;
};

std::array<double, kSsimWindow> window() {
  std::array<double, kSsimWindow> weights{};
  for (int i = 0; i < kSsimWindow; ++i) {
    const double from_middle = (i - kSsimWindow / 2) / kSigma;
    weights[static_cast<std::size_t>(i)] = std::exp(-0.5 * from_middle * from_middle);
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights)
    weight /= sum;
  return weights;
}

/// The n-th frame's, from 0 to 1.
Plane luma(const Tensor& frames, std::int64_t n) {
  Plane plane{
      static_cast<std::size_t>(frames.size(1)), static_cast<std::size_t>(frames.size(2)), {}};
  const float* at = frames.data<float>() + 3 * n * frames.size(1) * frames.size(2);
  plane.values.resize(plane.height * plane.width);
  const auto share = [](float value) { return (std::clamp(value, -1.0f, 1.0f) + 1.0) / 2; };
  for (double& value : plane.values) {
    value = 0.299 * share(at[0]) + 0.587 * share(at[1]) + 0.114 * share(at[2]);
    at += 3;
  }
  return plane;
}

/// a b at each place.
Plane product(const Plane& a, const Plane& b) {
  Plane plane{a.height, a.width, std::vector<double>(a.values.size())};
  std::ranges::transform(a.values, b.values, plane.values.begin(), std::multiplies());
  return plane;
}

/// Weighted means of the windows, where they lie in the picture: along rows, then columns.
Plane means(const Plane& from) {
  const auto weights = window();
  const std::size_t height = from.height - kSsimWindow + 1, width = from.width - kSsimWindow + 1;
  std::vector<double> along(from.height * width);
  Plane plane{height, width, std::vector<double>(height * width)};
  for (std::size_t y = 0; y < from.height; ++y)
    for (std::size_t k = 0; k < weights.size(); ++k)
      for (std::size_t x = 0; x < width; ++x)
        along[y * width + x] += weights[k] * from.values[y * from.width + x + k];
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t k = 0; k < weights.size(); ++k)
      for (std::size_t x = 0; x < width; ++x)
        plane.values[y * width + x] += weights[k] * along[(y + k) * width + x];
  return plane;
}

double of_frame(const Plane& a, const Plane& b) {
  const Plane mean_a = means(a), mean_b = means(b), squares_a = means(product(a, a)),
              squares_b = means(product(b, b)), products = means(product(a, b));
  double sum = 0;
  for (std::size_t i = 0; i < mean_a.values.size(); ++i) {
    const double m = mean_a.values[i], n = mean_b.values[i];
    const double variances = squares_a.values[i] - m * m + squares_b.values[i] - n * n;
    const double covariance = products.values[i] - m * n;
    sum += (2 * m * n + kC1) * (2 * covariance + kC2) / ((m * m + n * n + kC1) * (variances + kC2));
  }
  return sum / static_cast<double>(mean_a.values.size());
}

}  // namespace

double ssim(const Tensor& frames, const Tensor& decoded) {
  if (frames.shape() != decoded.shape() || frames.dims() != 4 || frames.size(3) != 3)
    fail("the SSIM of {} and {}", to_string(frames.shape()), to_string(decoded.shape()));
  if (frames.size(1) < kSsimWindow || frames.size(2) < kSsimWindow)
    fail("the SSIM of pictures smaller than {} x {}", kSsimWindow, kSsimWindow);
  std::vector<double> each(static_cast<std::size_t>(frames.size(0)));
#pragma omp parallel for schedule(static)
  for (std::size_t n = 0; n < each.size(); ++n) {
    const auto frame = static_cast<std::int64_t>(n);
    each[n] = of_frame(luma(frames, frame), luma(decoded, frame));
  }
  return std::accumulate(each.begin(), each.end(), 0.0) / static_cast<double>(each.size());
}

}  // namespace vfm::models

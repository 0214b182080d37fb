// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/picture_resize.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace vfm::models {
namespace {

/// A weight's bits after the point: a product with 8 bits, and the sum's overshoot, fit an int.
constexpr int kWeightBits = 22;

double sinc(double x) {
  return x == 0 ? 1 : std::sin(x * std::numbers::pi) / (x * std::numbers::pi);
}

/// How far a filter reaches to either side.
double reach_of(Resample resample) {
  return resample == Resample::lanczos ? 3 : resample == Resample::bicubic ? 2 : 1;
}

double filter_at(Resample resample, double x) {
  if (resample == Resample::lanczos) return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
  x = std::abs(x);
  if (resample == Resample::bilinear) return x < 1 ? 1 - x : 0;
  constexpr double a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/// What some of the pixels of a row (or column) are made of: pixel i of `count` pixels from
/// first[i] on, with the weights from begin[i] on.
struct Taps {
  std::vector<std::int64_t> first, begin;
  std::vector<int> weights;

  int count(std::size_t i) const { return static_cast<int>(begin[i + 1] - begin[i]); }
  std::int64_t end(std::size_t i) const { return first[i] + count(i); }
  /// That of pixel `at` of the old row.
  int weight(std::size_t i, std::int64_t at) const {
    return weights[static_cast<std::size_t>(begin[i] + at - first[i])];
  }
};

/// Of the pixels from `left` on of a row that had `from` and is to have `to`.
Taps make_taps(std::int64_t from, std::int64_t to, std::int64_t left, int pixels,
               Resample resample) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double stretch = std::max(scale, 1.0), step = 1 / stretch;
  const double reach = reach_of(resample) * stretch;
  Taps taps;
  taps.begin.push_back(0);
  std::vector<double> real;
  for (std::int64_t at = left; at < left + pixels; ++at) {
    const double centre = (static_cast<double>(at) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - reach + 0.5));
    const auto end = std::min(from, static_cast<std::int64_t>(centre + reach + 0.5));
    double sum = 0;
    real.clear();
    for (std::int64_t i = 0; i < end - first; ++i) {
      real.push_back(filter_at(resample, (static_cast<double>(i + first) - centre + 0.5) * step));
      sum += real.back();
    }
    for (double weight : real) {
      if (sum != 0) weight /= sum;
      taps.weights.push_back(
          static_cast<int>((weight < 0 ? -0.5 : 0.5) + weight * (1 << kWeightBits)));
    }
    taps.first.push_back(first);
    taps.begin.push_back(static_cast<std::int64_t>(taps.weights.size()));
  }
  return taps;
}

constexpr int kHalf = 1 << (kWeightBits - 1);

std::uint8_t to_byte(int sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

/// One row of pixels into another.
void along_row(const std::uint8_t* from, const Taps& taps, std::uint8_t* to) {
  for (std::size_t x = 0; x < taps.first.size(); ++x, to += 3) {
    const int* weights = taps.weights.data() + taps.begin[x];
    const std::uint8_t* pixel = from + 3 * taps.first[x];
    int red = kHalf, green = kHalf, blue = kHalf;
    for (int i = 0, count = taps.count(x); i < count; ++i, pixel += 3) {
      red += weights[i] * pixel[0];
      green += weights[i] * pixel[1];
      blue += weights[i] * pixel[2];
    }
    to[0] = to_byte(red);
    to[1] = to_byte(green);
    to[2] = to_byte(blue);
  }
}

/// sums += weight * row.
void add_row(std::vector<int>& sums, std::size_t at, int weight,
             const std::vector<std::uint8_t>& row) {
  int* to = sums.data() + at;
  for (std::size_t i = 0; i < row.size(); ++i)
    to[i] += weight * row[i];
}

/// Along rows, then along columns.
std::vector<std::uint8_t> resize_rows_first(const PictureView& picture, std::int64_t width,
                                            std::int64_t height, Resample resample,
                                            const PictureWindow& window) {
  const Taps across = make_taps(picture.width, width, window.left, window.width, resample);
  const Taps down = make_taps(picture.height, height, window.top, window.height, resample);
  // Each row is narrowed once, and added to all those that it is a part of: no picture of the old
  // height and the new width is ever there.
  std::vector<std::uint8_t> row(3 * static_cast<std::size_t>(window.width));
  const std::size_t rows = down.first.size();
  std::vector<int> sums(rows * row.size(), kHalf);
  std::size_t begin = 0;  // the first row of the result that is not complete
  for (std::int64_t y = down.first.front(); y < down.end(rows - 1); ++y) {
    along_row(picture.rgb.data() + 3 * y * picture.width, across, row.data());
    while (down.end(begin) <= y)
      ++begin;
    for (std::size_t to = begin; to < rows && down.first[to] <= y; ++to)
      add_row(sums, to * row.size(), down.weight(to, y), row);
  }
  std::vector<std::uint8_t> result(sums.size());
  std::transform(sums.begin(), sums.end(), result.begin(), to_byte);
  return result;
}

}  // namespace

std::vector<std::uint8_t> resize_picture(const PictureView& picture, std::int64_t width,
                                         std::int64_t height, Resample resample,
                                         const PictureWindow& window) {
  const std::int64_t pixels = std::int64_t{picture.width} * picture.height;
  if (picture.width < 1 || picture.height < 1 ||
      static_cast<std::int64_t>(picture.rgb.size()) != 3 * pixels)
    fail("{} bytes are not a picture of {}x{}", picture.rgb.size(), picture.width, picture.height);
  if (window.left < 0 || window.top < 0 || window.width < 1 || window.height < 1 ||
      window.left + window.width > width || window.top + window.height > height)
    fail("a picture of {}x{} has no part of {}x{} at {}, {}", width, height, window.width,
         window.height, window.left, window.top);
  if (picture.height <= std::int64_t{100} * picture.width || height >= picture.height)
    return resize_rows_first(picture, width, height, resample, window);
  // Columns first, as Pillow has it: a filter leaves a side alone that keeps its length.
  const std::vector<std::uint8_t> lowered = resize_rows_first(
      picture, picture.width, height, resample, {0, window.top, picture.width, window.height});
  return resize_rows_first({picture.width, window.height, lowered}, width, window.height, resample,
                           {window.left, 0, window.width, window.height});
}

}  // namespace vfm::models

// SPDX-License-Identifier: Apache-2.0
#include "curate/copies/change_codes.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace vfm::curate {
namespace {

constexpr int kWaves = 5;  // the mean and four cosines
constexpr std::array kCrops = {0.0, 0.075, 0.15};
constexpr int kSideWays = 9;      // crops of two opposite sides
constexpr double kMargin = 0.15;  // on each side of the index window

/// The weights of the cells along one side, for each wave.
using Waves = std::array<std::array<float, kSignatureSide>, kWaves>;

double integral_of_wave(int wave, double from, double to) {
  if (wave == 0) return to - from;
  const double turn = std::numbers::pi * wave;
  return (std::sin(turn * to) - std::sin(turn * from)) / turn;
}

/// `begin` and `end` of the window are fractions of the side.
Waves waves_of(double begin, double end) {
  Waves waves{};
  for (int wave = 0; wave < kWaves; ++wave)
    for (int cell = 0; cell < kSignatureSide; ++cell) {
      const auto in_window = [&](int edge) {
        return std::clamp((static_cast<double>(edge) / kSignatureSide - begin) / (end - begin), 0.0,
                          1.0);
      };
      waves[static_cast<std::size_t>(wave)][static_cast<std::size_t>(cell)] =
          static_cast<float>(integral_of_wave(wave, in_window(cell), in_window(cell + 1)));
    }
  return waves;
}

struct SideCrop {
  double low, high;  ///< Fractions that are cut off.
};
SideCrop side_crop(std::size_t way) {
  return {kCrops[way / kCrops.size()], kCrops[way % kCrops.size()]};
}

/// Returns, for each crop, the waves of the index window as it lies in the cropped picture.
const std::array<Waves, kSideWays>& lookup_waves() {
  static const std::array<Waves, kSideWays> all = [] {
    std::array<Waves, kSideWays> waves;
    for (std::size_t way = 0; way < kSideWays; ++way) {
      const SideCrop crop = side_crop(way);
      const double rest = 1 - crop.low - crop.high;
      waves[way] = waves_of((kMargin - crop.low) / rest, (1 - kMargin - crop.low) / rest);
    }
    return waves;
  }();
  return all;
}

/// The coefficients of the waves across, for each row.
using AcrossRows = std::array<std::array<float, kWaves>, kSignatureSide>;

void project_rows(const ChangePicture& change, const Waves& waves, AcrossRows& out) {
  for (std::size_t y = 0; y < kSignatureSide; ++y)
    for (std::size_t wave = 0; wave < kWaves; ++wave) {
      float sum = 0;
      for (std::size_t x = 0; x < kSignatureSide; ++x)
        sum += waves[wave][x] * change[y * kSignatureSide + x];
      out[y][wave] = sum;
    }
}

using Coefficients = std::array<float, kCodeBits>;

void project_columns(const AcrossRows& rows, const Waves& waves, Coefficients& out) {
  for (std::size_t down = 0; down < kWaves; ++down)
    for (std::size_t across = 0; across < kWaves; ++across) {
      if (down + across == 0) continue;
      float sum = 0;
      for (std::size_t y = 0; y < kSignatureSide; ++y)
        sum += waves[down][y] * rows[y][across];
      out[down * kWaves + across - 1] = sum;
    }
}

std::uint32_t signs_of(const Coefficients& coefficients) {
  std::uint32_t code = 0;
  for (std::size_t i = 0; i < kCodeBits; ++i)
    code |= static_cast<std::uint32_t>(coefficients[i] > 0) << i;
  return code;
}

/// Gives the code first, then the codes with some of the four weakest signs changed.
void signs_to_try(const Coefficients& coefficients, std::array<std::uint32_t, kTriedSigns>& codes) {
  std::array<std::uint8_t, kCodeBits> order;
  for (std::size_t i = 0; i < kCodeBits; ++i)
    order[i] = static_cast<std::uint8_t>(i);
  std::partial_sort(order.begin(), order.begin() + 4, order.end(), [&](auto a, auto b) {
    const float x = std::abs(coefficients[a]), y = std::abs(coefficients[b]);
    return x != y ? x < y : a < b;
  });
  const std::uint32_t code = signs_of(coefficients);
  for (std::uint32_t flips = 0; flips < kTriedSigns; ++flips) {
    codes[flips] = code;
    for (std::size_t i = 0; i < 4; ++i)
      if ((flips >> i & 1U) != 0) codes[flips] ^= 1U << order[i];
  }
}

}  // namespace

void change_at(std::span<const SignaturePicture> pictures, std::size_t k, ChangePicture& change) {
  const SignaturePicture &a = pictures[k - 2], &b = pictures[k - 1];
  const SignaturePicture &c = pictures[k], &d = pictures[k + 1];
  int total = 0;
  std::array<int, kSignatureCells> twice;
  for (std::size_t i = 0; i < kSignatureCells; ++i) {
    twice[i] = c[i] + d[i] - a[i] - b[i];
    total += twice[i];
  }
  const float mean = static_cast<float>(total) / static_cast<float>(kSignatureCells);
  for (std::size_t i = 0; i < kSignatureCells; ++i)
    change[i] = (static_cast<float>(twice[i]) - mean) / (2 * kLevelParts);
}

float change_strength(const ChangePicture& change) {
  double sum = 0;
  for (const float value : change)
    sum += static_cast<double>(value) * value;
  return static_cast<float>(std::sqrt(sum / static_cast<double>(kSignatureCells)));
}

float change_noise(const ChangePicture& change) {
  std::array<float, kSignatureCells> sizes;
  for (std::size_t i = 0; i < kSignatureCells; ++i)
    sizes[i] = std::abs(change[i]);
  const auto middle = sizes.begin() + kSignatureCells / 2;
  std::nth_element(sizes.begin(), middle, sizes.end());
  return 1.4826F * *middle;  // a normal variable has a median |x| of 0.6745
}

float change_detail(const ChangePicture& change) {
  constexpr std::size_t kRow = kSignatureSide;
  float squares = 0, steps = 0;
  for (std::size_t y = 0; y + 1 < kRow; ++y)
    for (std::size_t x = 0; x + 1 < kRow; ++x) {
      const float* cell = &change[y * kRow + x];
      const float across = cell[1] - cell[0], down = cell[kRow] - cell[0];
      squares += cell[0] * cell[0];
      steps += across * across + down * down;
    }
  return squares > 0 ? steps / (4 * squares) : 0;  // unrelated cells: a step has twice the variance
}

std::optional<std::uint32_t> index_code(const ChangePicture& change) {
  if (change_strength(change) < kLeastChange) return std::nullopt;
  const Waves& waves = lookup_waves()[0];  // without a crop
  AcrossRows rows;
  Coefficients coefficients;
  project_rows(change, waves, rows);
  project_columns(rows, waves, coefficients);
  return signs_of(coefficients);
}

CropWindow crop_of_way(std::size_t way) {
  const SideCrop across = side_crop(way % kSideWays), down = side_crop(way / kSideWays);
  return {across.low, 1 - across.high, down.low, 1 - down.high};
}

bool lookup_codes(const ChangePicture& change, LookupCodes& codes) {
  if (change_strength(change) < kLeastChange) return false;
  const std::array<Waves, kSideWays>& ways = lookup_waves();
  AcrossRows rows;
  Coefficients coefficients;
  for (std::size_t across = 0; across < kSideWays; ++across) {
    project_rows(change, ways[across], rows);
    for (std::size_t down = 0; down < kSideWays; ++down) {
      project_columns(rows, ways[down], coefficients);
      signs_to_try(coefficients, codes[down * kSideWays + across]);
    }
  }
  return true;
}

}  // namespace vfm::curate

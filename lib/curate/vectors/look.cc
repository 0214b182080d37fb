// SPDX-License-Identifier: Apache-2.0
#include "curate/vectors/look.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>

#include "base/json.h"

namespace vfm::curate {
namespace {

constexpr int kGrid = 8;   // colour layout: 8x8 cells
constexpr int kCells = 4;  // edges and motion: 4x4 cells
constexpr int kDirections = 8;
constexpr int kFine = kGlimpseSize / 2;  // side of pictures for edges and motion: less noise
constexpr int kTimes = 3;                // cosines over time, the mean included
constexpr int kLightTerms = 15, kColourTerms = 6;
constexpr int kTerms = kLightTerms + 2 * kColourTerms;

// Each group's share of the squared length, and the length below which a group is mostly noise.
constexpr float kGround = 0.15f, kLayout = 0.30f, kChange = 0.20f, kEdges = 0.25f, kMotion = 0.10f;
constexpr float kLayoutNoise = 0.20f, kChangeNoise = 0.20f, kEdgesNoise = 0.15f,
                kMotionNoise = 0.20f;
constexpr float kStillEdge = 0.02f, kStillDifference = 0.015f;

using Terms = std::array<float, kTerms>;
using Grid = std::array<float, kGrid * kGrid>;

/// Returns element `n` of cosine `k` in the orthonormal DCT-II of length `size`.
float cosine(int k, int n, int size) {
  const double scale = std::sqrt((k == 0 ? 1.0 : 2.0) / size);
  return static_cast<float>(scale * std::cos(std::numbers::pi * (n + 0.5) * k / size));
}

/// Computes the first out.size() DCT coefficients of an 8x8 grid, in order of diagonals.
void low_terms(const Grid& grid, std::span<float> out) {
  static const auto basis = [] {
    std::array<std::array<float, kGrid>, kGrid> b{};
    for (int k = 0; k < kGrid; ++k)
      for (int n = 0; n < kGrid; ++n)
        b[static_cast<std::size_t>(k)][static_cast<std::size_t>(n)] = cosine(k, n, kGrid);
    return b;
  }();
  std::size_t at = 0;
  for (std::size_t diagonal = 0; at < out.size(); ++diagonal)
    for (std::size_t v = 0; v <= diagonal && at < out.size(); ++v) {
      const auto& across = basis[diagonal - v];
      const auto& down = basis[v];
      float sum = 0;
      for (std::size_t y = 0; y < kGrid; ++y)
        for (std::size_t x = 0; x < kGrid; ++x)
          sum += grid[y * kGrid + x] * across[x] * down[y];
      out[at++] = sum;
    }
}

Terms layout_terms(const media::RgbImage& image) {
  Grid light{}, blue{}, red{};
  constexpr int cell = kGlimpseSize / kGrid;
  for (int y = 0; y < kGlimpseSize; ++y)
    for (int x = 0; x < kGlimpseSize; ++x) {
      const std::uint8_t* p = &image.pixels[static_cast<std::size_t>(3 * (y * kGlimpseSize + x))];
      const float r = p[0] / 255.0f, g = p[1] / 255.0f, b = p[2] / 255.0f;
      const auto at = static_cast<std::size_t>(y / cell * kGrid + x / cell);
      const float luma = 0.299f * r + 0.587f * g + 0.114f * b;
      constexpr float mean = 1.0f / (cell * cell);
      light[at] += luma * mean;
      blue[at] += 0.564f * (b - luma) * mean;
      red[at] += 0.713f * (r - luma) * mean;
    }
  Terms terms{};
  const std::span<float> all(terms);
  low_terms(light, all.first(kLightTerms));
  low_terms(blue, all.subspan(kLightTerms, kColourTerms));
  low_terms(red, all.subspan(kLightTerms + kColourTerms, kColourTerms));
  return terms;
}

/// Returns the DCT of the layout over time as [cosine][term], scaled so that [0] is the mean.
std::array<Terms, kTimes> layout_over_time(const std::vector<media::RgbImage>& pictures) {
  std::array<Terms, kTimes> out{};
  const int count = static_cast<int>(pictures.size());
  const float scale = 1.0f / std::sqrt(static_cast<float>(count));
  for (int n = 0; n < count; ++n) {
    const Terms terms = layout_terms(pictures[static_cast<std::size_t>(n)]);
    for (int k = 0; k < std::min(kTimes, count); ++k)
      for (std::size_t i = 0; i < terms.size(); ++i)
        out[static_cast<std::size_t>(k)][i] += scale * cosine(k, n, count) * terms[i];
  }
  return out;
}

/// Divides `weight` between the two nearest of eight directions. `turn` is in full turns, 0 to 1.
void add_direction(std::span<float> bins, float turn, float weight) {
  const float at = turn * kDirections;
  const float low = std::floor(at);
  const auto i = static_cast<std::size_t>(low) % kDirections;
  bins[i] += weight * (1 - (at - low));
  bins[(i + 1) % kDirections] += weight * (at - low);
}

struct Gradient {
  float x, y;
};
Gradient gradient(const std::vector<float>& light, int x, int y) {
  const auto at = [&](int dx, int dy) {
    return light[static_cast<std::size_t>((y + dy) * kFine + x + dx)];
  };
  return {(at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1)) / 8,
          (at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1)) / 8};
}

std::size_t cell_of(int x, int y) {
  return static_cast<std::size_t>(y * kCells / kFine * kCells + x * kCells / kFine);
}

void add_edges(const std::vector<float>& light, std::span<float> bins) {
  for (int y = 1; y + 1 < kFine; ++y)
    for (int x = 1; x + 1 < kFine; ++x) {
      const auto [gx, gy] = gradient(light, x, y);
      const float strength = std::hypot(gx, gy) - kStillEdge;
      if (strength <= 0) continue;
      // Opposite gradients belong to the same edge, so half a turn covers all directions.
      float turn = std::atan2(gy, gx) / std::numbers::pi_v<float>;
      if (turn < 0) turn += 1;
      if (turn >= 1) turn = 0;
      add_direction(bins.subspan(cell_of(x, y) * kDirections, kDirections), turn, strength);
    }
}

/// `bins` has 16 cells of change, then eight directions of motion across edges.
void add_motion(const std::vector<float>& before, const std::vector<float>& after,
                std::span<float> bins) {
  for (int y = 1; y + 1 < kFine; ++y)
    for (int x = 1; x + 1 < kFine; ++x) {
      const auto i = static_cast<std::size_t>(y * kFine + x);
      const float difference = after[i] - before[i];
      const float strength = std::abs(difference) - kStillDifference;
      if (strength <= 0) continue;
      bins[cell_of(x, y)] += strength;
      const auto [gx, gy] = gradient(before, x, y);
      if (std::hypot(gx, gy) <= kStillEdge) continue;
      const float sign = difference > 0 ? -1.0f : 1.0f;
      float turn = std::atan2(sign * gy, sign * gx) / (2 * std::numbers::pi_v<float>);
      if (turn < 0) turn += 1;
      if (turn >= 1) turn = 0;
      add_direction(bins.subspan(kCells * kCells, kDirections), turn, strength);
    }
}

/// Takes square roots, so that a strong bin does not dominate, and subtracts their mean, so that
/// unrelated histograms are orthogonal.
void balance(std::span<float> bins, float samples) {
  float mean = 0;
  for (float& bin : bins)
    mean += bin = std::sqrt(bin / samples);
  mean /= static_cast<float>(bins.size());
  for (float& bin : bins)
    bin -= mean;
}

/// Appends `group`, scaled to the length sqrt(share), or less if `group` is little above noise.
void append(std::vector<float>& out, std::span<const float> group, float share, float noise) {
  float squares = noise * noise;
  for (const float x : group)
    squares += x * x;
  const float scale = std::sqrt(share / squares);
  for (const float x : group)
    out.push_back(x * scale);
}

}  // namespace

std::vector<float> look(const Glimpse& glimpse) {
  if (glimpse.pictures.empty()) return std::vector<float>(kLookDim, 0.0f);
  const auto layout = layout_over_time(glimpse.pictures);
  std::vector<float> edges(kCells * kCells * kDirections), motion(kCells * kCells + kDirections);
  for (std::size_t i = 0; i < glimpse.pictures.size(); ++i) {
    const auto light = halve(luma_of(glimpse.pictures[i]), kGlimpseSize);
    add_edges(light, edges);
    if (i < glimpse.later.size())
      add_motion(light, halve(luma_of(glimpse.later[i]), kGlimpseSize), motion);
  }
  const auto samples = static_cast<float>(glimpse.pictures.size() * kFine * kFine);
  balance(edges, samples / (kCells * kCells));
  balance(std::span(motion).first(kCells * kCells), samples / (kCells * kCells));
  balance(std::span(motion).subspan(kCells * kCells), samples);

  std::vector<float> out;
  const Terms& mean = layout[0];
  // A mean is coefficient 0 / 8. Light is an angle, so that black and dark grey differ.
  const float angle = mean[0] / kGrid * std::numbers::pi_v<float>;
  const float ground[4] = {std::cos(angle), std::sin(angle), 3 * mean[kLightTerms] / kGrid,
                           3 * mean[kLightTerms + kColourTerms] / kGrid};
  append(out, ground, kGround, 0);
  std::vector<float> still;
  for (int i = 0; i < kTerms; ++i)
    if (i != 0 && i != kLightTerms && i != kLightTerms + kColourTerms)
      still.push_back(mean[static_cast<std::size_t>(i)]);
  append(out, still, kLayout, kLayoutNoise);
  std::vector<float> change;
  for (std::size_t k = 1; k < kTimes; ++k)
    change.insert(change.end(), layout[k].begin(), layout[k].end());
  append(out, change, kChange, kChangeNoise);
  append(out, edges, kEdges, kEdgesNoise);
  append(out, motion, kMotion, kMotionNoise);
  const float length = std::sqrt(static_cast<float>(dot(out, out)));
  for (float& x : out)
    x /= length;
  return out;
}

Json look_config() {
  return {{"name", "builtin:look"}, {"dim", kLookDim}, {"version", 1}};
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    sum += double{a[i]} * double{b[i]};
  return sum;
}

}  // namespace vfm::curate

// SPDX-License-Identifier: Apache-2.0
#include "curate/shots/stitch.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace vfm::curate {
namespace {

constexpr int kGridSide = 8;

/// Writes the means of an 8 x 8 grid, minus the mean of all, times `weight`. Returns the mean.
float lay_out(const std::uint8_t* cells, int side, float weight, float* out) {
  const int n = side / kGridSide;
  float mean = 0;
  for (int gy = 0; gy < kGridSide; ++gy) {
    for (int gx = 0; gx < kGridSide; ++gx) {
      int sum = 0;
      for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x)
          sum += cells[(gy * n + y) * side + gx * n + x];
      out[gy * kGridSide + gx] = static_cast<float>(sum) / static_cast<float>(n * n);
      mean += out[gy * kGridSide + gx];
    }
  }
  mean /= kGridSide * kGridSide;
  for (int i = 0; i < kGridSide * kGridSide; ++i)
    out[i] = weight * (out[i] - mean);
  return mean;
}

/// Returns the cosine of two vectors. Vectors much shorter than `floor` count as equal, as the
/// layouts of two flat pictures.
template <std::size_t kSize>
float cosine(const std::array<float, kSize>& a, const std::array<float, kSize>& b, float floor) {
  float aa = floor * floor, bb = aa, ab = aa;
  for (std::size_t i = 0; i < kSize; ++i)
    aa += a[i] * a[i], bb += b[i] * b[i], ab += a[i] * b[i];
  return ab / std::sqrt(aa * bb);
}

}  // namespace

SceneLook scene_look(const SmallPicture& p) {
  SceneLook look;
  look.colour[0] = lay_out(p.y.data(), kLumaSide, 1, look.layout.data());
  look.colour[1] = lay_out(p.u.data(), kChromaSide, 2, look.layout.data() + 64);
  look.colour[2] = lay_out(p.v.data(), kChromaSide, 2, look.layout.data() + 128);
  for (int y = 1; y + 1 < kLumaSide; ++y) {
    for (int x = 1; x + 1 < kLumaSide; ++x) {
      const std::uint8_t* c = p.y.data() + y * kLumaSide + x;
      const int across = c[1] - c[-1], down = c[kLumaSide] - c[-kLumaSide];
      const int rising = c[1 - kLumaSide] - c[kLumaSide - 1],
                falling = c[kLumaSide + 1] - c[-kLumaSide - 1];
      float* cell = look.edges.data() + (y / 8 * kGridSide + x / 8) * 4;
      cell[0] += static_cast<float>(std::abs(across));
      cell[1] += static_cast<float>(std::abs(down));
      cell[2] += static_cast<float>(std::abs(rising));
      cell[3] += static_cast<float>(std::abs(falling));
    }
  }
  for (float& e : look.edges)
    e /= 64;
  return look;
}

float look_similarity(const SceneLook& a, const SceneLook& b) {
  float apart = 0;
  for (std::size_t i = 0; i < a.colour.size(); ++i)
    apart += std::abs(a.colour[i] - b.colour[i]);
  return std::min(cosine(a.layout, b.layout, 16), cosine(a.edges, b.edges, 8)) - 0.2f * apart / 16;
}

double threshold_with_sound(double threshold, double continuity) {
  const double known = 2 * std::clamp(continuity, 0.0, 1.0) - 1;
  return threshold - (1 - threshold) * known * (known > 0 ? kSoundLowers : kSoundRaises);
}

double vector_likeness(const std::vector<float>& a, const std::vector<float>& b) {
  double aa = 0, bb = 0, ab = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
    ab += double{a[i]} * b[i];
  }
  if (a.size() != b.size() || !(aa > 0) || !(bb > 0) || !std::isfinite(aa * bb))
    return std::numeric_limits<double>::quiet_NaN();
  return std::clamp(ab / std::sqrt(aa * bb), -1.0, 1.0);
}

}  // namespace vfm::curate

// SPDX-License-Identifier: Apache-2.0
#include "curate/shots/frame_features.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace vfm::curate {
namespace {

/// Computes the HSV saturation of chroma cells without branches, so that the loop vectorises.
void find_saturation(const SmallPicture& p, FrameFeatures& out) {
  alignas(32) std::array<std::uint8_t, kChromaCells> luma;
  halve_luma(p, luma);
  for (int i = 0; i < kChromaCells; ++i) {
    const float y = luma[i], u = static_cast<float>(p.u[i]) - 128,
                v = static_cast<float>(p.v[i]) - 128;
    const float r = std::clamp(y + 1.402f * v, 0.f, 255.f);
    const float g = std::clamp(y - 0.344f * u - 0.714f * v, 0.f, 255.f);
    const float b = std::clamp(y + 1.772f * u, 0.f, 255.f);
    const float high = std::max(r, std::max(g, b)), low = std::min(r, std::min(g, b));
    const float range = high - low;
    out.saturation[i] = static_cast<std::uint8_t>(high > 0 ? 255.f * range / high : 0.f);
  }
}

/// Smooths `n` bins with two passes of (1 2 1)/4. The bins at the ends are repeated.
void smooth(float* bins, int n, int stride) {
  for (int pass = 0; pass < 2; ++pass) {
    float before = bins[0];
    for (int i = 0; i < n; ++i) {
      const float here = bins[i * stride];
      const float after = i + 1 < n ? bins[(i + 1) * stride] : here;
      bins[i * stride] = 0.25f * before + 0.5f * here + 0.25f * after;
      before = here;
    }
  }
}

void count_histograms(FrameFeatures& f) {
  std::array<std::uint16_t, kLumaBins> luma{};
  for (const std::uint8_t y : f.picture.y)
    ++luma[y / (256 / kLumaBins)];
  std::copy(luma.begin(), luma.end(), f.luma_histogram.begin());
  smooth(f.luma_histogram.data(), kLumaBins, 1);
  // Chroma bins are half as wide as 256/16, because most chroma is within 64 of grey.
  std::array<std::uint16_t, kChromaBins * kChromaBins> chroma{};
  const auto bin = [](int c) {
    return std::clamp((c - 64) / (128 / kChromaBins), 0, kChromaBins - 1);
  };
  for (int i = 0; i < kChromaCells; ++i)
    ++chroma[bin(f.picture.u[i]) * kChromaBins + bin(f.picture.v[i])];
  std::copy(chroma.begin(), chroma.end(), f.chroma_histogram.begin());
  for (int i = 0; i < kChromaBins; ++i)
    smooth(f.chroma_histogram.data() + i * kChromaBins, kChromaBins, 1);
  for (int i = 0; i < kChromaBins; ++i)
    smooth(f.chroma_histogram.data() + i, kChromaBins, kChromaBins);
}

template <std::size_t kBins>
float correlation_distance(const std::array<float, kBins>& a, const std::array<float, kBins>& b) {
  float sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
  for (std::size_t i = 0; i < kBins; ++i) {
    sa += a[i], sb += b[i];
    saa += a[i] * a[i], sbb += b[i] * b[i], sab += a[i] * b[i];
  }
  const float n = static_cast<float>(kBins);
  const float va = saa - sa * sa / n, vb = sbb - sb * sb / n, covariance = sab - sa * sb / n;
  return va > 0 && vb > 0 ? 1 - covariance / std::sqrt(va * vb) : 0;
}

struct Moments {
  double va, vb, covariance;  // sums over cells, about the means
};
Moments moments(const std::uint8_t* a, const std::uint8_t* b, int side, const ActiveArea& area,
                int shrink) {
  std::uint32_t sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;  // at most 4096 * 255^2 < 2^32
  for (int y = area.top / shrink; y < area.bottom / shrink; ++y) {
    for (int i = y * side + area.left / shrink; i < y * side + area.right / shrink; ++i) {
      const std::uint32_t p = a[i], q = b[i];
      sa += p, sb += q, saa += p * p, sbb += q * q, sab += p * q;
    }
  }
  const double n =
      static_cast<double>(area.right - area.left) * (area.bottom - area.top) / (shrink * shrink);
  const double ma = sa / n;
  return {saa - ma * sa, sbb - sb / n * sb, sab - ma * sb};
}

template <std::size_t kCells>
std::uint32_t sum_of_differences(const std::array<std::uint8_t, kCells>& a,
                                 const std::array<std::uint8_t, kCells>& b) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < kCells; ++i)
    sum += static_cast<std::uint32_t>(std::abs(int{a[i]} - int{b[i]}));
  return sum;
}

template <int kSide>
float difference_of_means(const std::uint8_t* a, const std::uint8_t* b) {
  int sum = 0;
  for (int top = 0; top < kSide; top += 4) {
    for (int left = 0; left < kSide; left += 4) {
      int part = 0;
      for (int i = 0; i < 16; ++i) {
        const int at = (top + i / 4) * kSide + left + i % 4;
        part += int{a[at]} - int{b[at]};
      }
      sum += std::abs(part);
    }
  }
  return static_cast<float>(sum) / (kSide * kSide);
}

}  // namespace

void compute_features(const media::Frame& frame, FrameFeatures& out) {
  sample_picture(frame, out.picture);
  complete_features(out);
}

void complete_features(FrameFeatures& out) {
  find_saturation(out.picture, out);
  count_histograms(out);
  out.luma = luma_statistics(out.picture);
  out.area = active_area(out.picture);
  out.black = out.area == ActiveArea{} && out.luma.dark == 1;
  out.deviation = colour_deviation(out.picture, out.area);
  out.whole_deviation = colour_deviation(out.picture);
}

float histogram_difference(const FrameFeatures& a, const FrameFeatures& b) {
  return std::max(correlation_distance(a.luma_histogram, b.luma_histogram),
                  correlation_distance(a.chroma_histogram, b.chroma_histogram));
}

float structure_difference(const FrameFeatures& a, const FrameFeatures& b, float noise) {
  const ActiveArea area = a.black ? b.area : b.black ? a.area : join(a.area, b.area);
  const SmallPicture &p = a.picture, &q = b.picture;
  const Moments y = moments(p.y.data(), q.y.data(), kLumaSide, area, 1);
  const Moments u = moments(p.u.data(), q.u.data(), kChromaSide, area, 2);
  const Moments v = moments(p.v.data(), q.v.data(), kChromaSide, area, 2);
  // A chroma cell has the area of four luma cells.
  const double floor =
      static_cast<double>(noise) * noise * (area.right - area.left) * (area.bottom - area.top);
  const double va = y.va + 4 * (u.va + v.va) + floor;
  const double vb = y.vb + 4 * (u.vb + v.vb) + floor;
  const double covariance = y.covariance + 4 * (u.covariance + v.covariance) + floor;
  return static_cast<float>(1 - covariance / std::sqrt(va * vb));
}

float plain_difference(const SmallPicture& a, const SmallPicture& b) {
  const double luma = static_cast<double>(sum_of_differences(a.y, b.y)) / kLumaCells;
  const double chroma = sum_of_differences(a.u, b.u) + sum_of_differences(a.v, b.v);
  return static_cast<float>(luma + chroma / kChromaCells);
}

float coarse_difference(const SmallPicture& a, const SmallPicture& b) {
  return difference_of_means<kLumaSide>(a.y.data(), b.y.data()) +
         difference_of_means<kChromaSide>(a.u.data(), b.u.data()) +
         difference_of_means<kChromaSide>(a.v.data(), b.v.data());
}

}  // namespace vfm::curate

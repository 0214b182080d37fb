// Tone mapping against FFmpeg's zscale, which knows transfers, primaries and matrices from another
// source (zimg), in floating point and without a grid. No filter of FFmpeg has the curve of
// BT.2390: where light is compressed the curve is applied here, to zscale's linear light.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "media/colour/tone_map.h"
#include "media_files.h"

namespace {

using namespace vfm::media;

constexpr int kLevels = 9, kColors = kLevels * kLevels * kLevels;
constexpr int kPatch = 8, kAcross = 27, kSide = kAcross * kPatch;  // pixels, patches, pixels

bool has_zscale() {
  return media_files::available() &&
         media_files::run("ffmpeg -v error -filters | grep -c ' zscale ' || true").front() != '0';
}

/// Patches of one colour each: R, G and B from 0 to `most` of the signal, in kLevels steps.
Frame patches(int transfer, double most) {
  Frame frame = make_frame(PixelLayout::yuv420p10, kSide, kSide);
  frame.color = {9, static_cast<std::uint8_t>(transfer), 9};
  const auto put = [&](int p, int x, int y, double value) {
    const auto sample = static_cast<std::uint16_t>(std::lround(value));
    std::memcpy(writable(frame, p) + std::ptrdiff_t{y} * frame.stride[p] + 2 * x, &sample, 2);
  };
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const int color = y / kPatch * kAcross + x / kPatch;
      const auto part = [&](int index) { return most * index / (kLevels - 1); };
      const double r = part(color / kLevels / kLevels), g = part(color / kLevels % kLevels),
                   b = part(color % kLevels);
      const double luma = 0.2627 * r + 0.6780 * g + 0.0593 * b;
      put(0, x, y, 64 + 876 * luma);
      if (x % 2 == 1 || y % 2 == 1) continue;
      put(1, x / 2, y / 2, 512 + 896 * (b - luma) / 1.8814);
      put(2, x / 2, y / 2, 512 + 896 * (r - luma) / 1.4746);
    }
  }
  return frame;
}

std::string bytes_of(const Frame& frame) {
  std::string bytes;
  for (int p = 0; p < plane_count(frame.layout); ++p)
    for (int y = 0; y < plane_rows(frame, p); ++y)
      bytes.append(reinterpret_cast<const char*>(frame.plane[p]) +
                       static_cast<std::ptrdiff_t>(y) * frame.stride[p],
                   static_cast<std::size_t>(plane_row_bytes(frame, p)));
  return bytes;
}

/// What `filters` make of raw pictures of kSide squared.
std::string filtered(const std::string& raw, const std::string& from, const std::string& filters,
                     const std::string& to) {
  const std::string in = media_files::path("zscale-in.raw"), out = media_files::path("zscale.raw");
  media_files::write(in, raw);
  media_files::run("ffmpeg -v error -y -f rawvideo -pix_fmt " + from + " -s " +
                   std::to_string(kSide) + "x" + std::to_string(kSide) + " -i '" + in + "' -vf '" +
                   filters + "' -f rawvideo -pix_fmt " + to + " '" + out + "'");
  return media_files::read(out);
}

std::vector<float> floats_of(const std::string& planes) {
  std::vector<float> values(planes.size() / sizeof(float));
  std::memcpy(values.data(), planes.data(), planes.size());
  return values;
}

/// G, B, R of each pixel, in linear light: calls `change` with references to R, G and B.
template <class Change>
void for_each_light(std::string& planes, Change change) {
  std::vector<float> values = floats_of(planes);
  const std::size_t plane = values.size() / 3;
  for (std::size_t i = 0; i < plane; ++i)
    change(values[2 * plane + i], values[i], values[plane + i]);
  std::memcpy(planes.data(), values.data(), planes.size());
}

/// zscale raises each of HLG's R, G and B to the screen's gamma of 1.2; BT.2100 has the luminance
/// raised, and all three with it. In units of 203 cd/m2, of a screen of 1000.
void raise_luminance(std::string& planes) {
  for_each_light(planes, [](float& r, float& g, float& b) {
    for (float* part : {&r, &g, &b})
      *part = std::pow(std::max(0.f, *part) * 203 / 1000, 1 / 1.2f);
    const float gain = 1000 / 203.f * std::pow(0.2627f * r + 0.6780f * g + 0.0593f * b, 0.2f);
    for (float* part : {&r, &g, &b})
      *part *= gain;
  });
}

/// BT.2390-10, 5.4.1, on the largest of the three, in units of 203 cd/m2. `peak` in cd/m2.
void compress(std::string& planes, double peak) {
  const auto to_pq = [](double light) {  // ST 2084, light as part of 10000 cd/m2
    const double p = std::pow(light, 0.1593017578125);
    return std::pow((0.8359375 + 18.8515625 * p) / (1 + 18.6875 * p), 78.84375);
  };
  const auto from_pq = [](double signal) {
    const double p = std::pow(signal, 1 / 78.84375);
    return std::pow(std::max(p - 0.8359375, 0.0) / (18.8515625 - 18.6875 * p), 1 / 0.1593017578125);
  };
  const double top = to_pq(peak / 10000), most = to_pq(0.0203) / top, knee = 1.5 * most - 0.5;
  for_each_light(planes, [&](float& r, float& g, float& b) {
    const double light = std::max({r, g, b}) * 203 / 10000.0;
    const double e1 = std::min(1.0, to_pq(std::max(0.0, light)) / top);
    if (e1 <= knee || light <= 0) return;
    const double t = (e1 - knee) / (1 - knee);
    const double t2 = t * t, t3 = t2 * t;
    const double e2 =
        (2 * t3 - 3 * t2 + 1) * knee + (t3 - 2 * t2 + t) * (1 - knee) + (3 * t2 - 2 * t3) * most;
    const auto gain = static_cast<float>(from_pq(e2 * top) / light);
    r *= gain, g *= gain, b *= gain;
  });
}

/// Of Y, U and V, in codes of 8 bits.
struct Difference {
  int patches = 0;
  std::array<double, 3> mean{}, most{};
};

/// Whether BT.709 has each color, from its light in BT.2020.
std::vector<bool> in_gamut(const std::string& planes) {
  const std::vector<float> v = floats_of(planes);
  constexpr std::size_t kPlane = std::size_t{kSide} * kSide;
  std::vector<bool> has;
  for (int i = 0; i < kColors; ++i) {
    const auto at = static_cast<std::size_t>((i / kAcross * kPatch + kPatch / 2) * kSide +
                                             i % kAcross * kPatch + kPatch / 2);
    const double r = v[2 * kPlane + at], g = v[at], b = v[kPlane + at];
    const std::array<double, 3> c = {1.6605 * r - 0.5876 * g - 0.0728 * b,
                                     -0.1246 * r + 1.1329 * g - 0.0083 * b,
                                     -0.0182 * r - 0.1006 * g + 1.1187 * b};
    has.push_back(*std::min_element(c.begin(), c.end()) >= -1e-4 &&
                  *std::max_element(c.begin(), c.end()) <= 1 + 1e-4);
  }
  return has;
}

/// In the middle of each patch.
Difference difference(const Frame& ours, const std::string& theirs, const std::vector<bool>& has,
                      bool wanted) {
  Difference d;
  std::size_t plane_begin = 0;
  for (int p = 0; p < 3; ++p) {
    const int side = p == 0 ? kSide : kSide / 2, patch = p == 0 ? kPatch : kPatch / 2;
    for (int i = 0; i < kColors; ++i) {
      if (has[static_cast<std::size_t>(i)] != wanted) continue;
      if (p == 0) ++d.patches;
      const int x = i % kAcross * patch + patch / 2, y = i / kAcross * patch + patch / 2;
      const int a = ours.plane[p][std::ptrdiff_t{y} * ours.stride[p] + x];
      const int b = static_cast<std::uint8_t>(
          theirs[plane_begin + static_cast<std::size_t>(y) * static_cast<std::size_t>(side) +
                 static_cast<std::size_t>(x)]);
      const auto k = static_cast<std::size_t>(p);
      d.mean[k] += std::abs(a - b);
      d.most[k] = std::max<double>(d.most[k], std::abs(a - b));
    }
    plane_begin += static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
  }
  for (double& mean : d.mean)
    mean /= std::max(1, d.patches);
  return d;
}

/// Of patches up to `most` of the signal: of colours that BT.709 has, and of others. `peak`: 0:
/// nothing is compressed.
std::array<Difference, 2> against_zscale(int transfer, double most, int peak) {
  const char* const name = transfer == 16   ? "smpte2084"
                           : transfer == 18 ? "arib-std-b67"
                                            : "2020_10";
  const Frame frame = patches(transfer, most);
  ToneMap::Kind kind = ToneMap::kind_of(frame);
  if (transfer == 16) kind.peak = peak > 0 ? peak : 203;
  const Frame ours = ToneMap(kind).map(frame);
  std::string light = filtered(bytes_of(frame), "yuv420p10le",
                               std::string("zscale=tin=") + name +
                                   ":pin=2020:min=2020_ncl:rin=tv:t=linear:npl=203:m=gbr:p=2020,"
                                   "format=gbrpf32le",
                               "gbrpf32le");
  if (transfer == 18) raise_luminance(light);
  if (peak > 0) compress(light, peak);
  // In whole numbers between, so that what BT.709 does not have is clipped.
  const std::string theirs =
      filtered(light, "gbrpf32le",
               "zscale=tin=linear:pin=2020:min=gbr:rin=pc:t=709:p=709:m=gbr:r=pc,format=gbrp16le,"
               "zscale=min=gbr:rin=pc:tin=709:pin=709:m=709:r=tv:t=709:p=709,format=yuv420p",
               "yuv420p");
  const std::vector<bool> has = in_gamut(light);
  return {difference(ours, theirs, has, true), difference(ours, theirs, has, false)};
}

/// `mean` and `most`: of colours that BT.709 has, and of others.
void check(const char* what, const std::array<Difference, 2>& both, std::array<double, 2> mean,
           std::array<double, 2> most) {
  for (std::size_t outside = 0; outside < 2; ++outside) {
    const Difference& d = both[outside];
    INFO(what << (outside ? ", outside of BT.709" : ", in BT.709") << ": " << d.patches
              << " colours; mean and most of Y " << d.mean[0] << ", " << d.most[0] << "; U "
              << d.mean[1] << ", " << d.most[1] << "; V " << d.mean[2] << ", " << d.most[2]);
    CHECK(d.patches > 30);
    for (std::size_t p = 0; p < 3; ++p) {
      CHECK(d.mean[p] < mean[outside]);
      CHECK(d.most[p] <= most[outside]);
    }
  }
}

}  // namespace

TEST_CASE("tone mapping is what zscale has, but for the error of the grid") {
  if (!has_zscale()) {
    WARN("skipped: no ffmpeg with zscale on this machine");
    return;
  }
  // Colours that BT.709 lacks are clipped, and bend between the points of the grid.
  check("PQ to 203 cd/m2", against_zscale(16, 0.58, 0), {0.8, 0.8}, {8, 18});
  check("PQ to 1000", against_zscale(16, 0.75, 1000), {0.8, 0.8}, {8, 20});
  check("PQ to 4000", against_zscale(16, 0.9, 4000), {0.8, 0.9}, {8, 24});
  check("HLG", against_zscale(18, 1, 1000), {0.6, 0.6}, {8, 10});
  check("SDR in BT.2020", against_zscale(14, 1, 0), {0.4, 0.4}, {9, 10});
}

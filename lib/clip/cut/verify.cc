// Verifies a clip: decodes it, and compares it with the source's frames.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/hash.h"
#include "clip/cut/encoder.h"

namespace vfm::clip {
namespace {

constexpr double kLeastPsnr = 20;  // dB; useful quality is far above, other shots are far below
constexpr double kClearly = 1;     // dB by which a neighbouring frame must fit better
constexpr double kApart = 38;      // dB; frames more alike than this are not told apart

constexpr double kPeak = 255, kDeepPeak = 1023;

/// Returns a table from luma to full-range luma. Limited range is 16 to 235.
std::array<std::uint8_t, 256> to_full_range(bool is_full) {
  std::array<std::uint8_t, 256> table{};
  for (int i = 0; i < 256; ++i)
    table[static_cast<std::size_t>(i)] =
        static_cast<std::uint8_t>(is_full ? i : std::clamp((255 * (i - 16) + 109) / 219, 0, 255));
  return table;
}

double decibels(double mse, double peak) {
  return mse > 0 ? std::min(99.0, 10 * std::log10(peak * peak / mse)) : 99;
}

/// psnr() of two HDR frames, which have the same range.
double deep_psnr(const media::Frame& a, const media::Frame& b) {
  const int width = std::min(a.width, b.width), height = std::min(a.height, b.height);
  double sum = 0;
  for (int y = 0; y < height; ++y) {
    const auto* p =
        reinterpret_cast<const std::uint16_t*>(a.plane[0] + std::ptrdiff_t{y} * a.stride[0]);
    const auto* q =
        reinterpret_cast<const std::uint16_t*>(b.plane[0] + std::ptrdiff_t{y} * b.stride[0]);
    std::uint64_t row = 0;
    for (int x = 0; x < width; ++x) {
      const int d = int{p[x]} - int{q[x]};
      row += static_cast<std::uint32_t>(d * d);
    }
    sum += static_cast<double>(row);
  }
  return decibels(sum / (static_cast<double>(width) * height), kDeepPeak);
}

/// Returns the peak signal-to-noise ratio of luma in the common pixels, or 99 if they are equal.
/// The ranges may differ, because an encoder that cannot signal full range gets limited range.
double psnr(const media::Frame& a, const media::Frame& b) {
  if (ClipEncoder::keeps(a) && ClipEncoder::keeps(b)) return deep_psnr(a, b);
  const bool alike = a.full_range == b.full_range;
  const auto of_a = to_full_range(alike || a.full_range);
  const auto of_b = to_full_range(alike || b.full_range);
  const int width = std::min(a.width, b.width), height = std::min(a.height, b.height);
  std::uint64_t sum = 0;
  for (int y = 0; y < height; ++y) {
    const std::uint8_t* p = a.plane[0] + static_cast<std::ptrdiff_t>(y) * a.stride[0];
    const std::uint8_t* q = b.plane[0] + static_cast<std::ptrdiff_t>(y) * b.stride[0];
    std::uint32_t row = 0;
    for (int x = 0; x < width; ++x) {
      const int d = int{of_a[p[x]]} - int{of_b[q[x]]};
      row += static_cast<std::uint32_t>(d * d);
    }
    sum += row;
  }
  return decibels(static_cast<double>(sum) / (static_cast<double>(width) * height), kPeak);
}

/// Returns the source's frame in the size of the clip's frame, because a source may change its
/// size. A repeated last column or row is not a change of size.
media::Frame in_size_of(const media::Frame& clip, const media::Frame& frame) {
  const bool same =
      std::abs(clip.width - frame.width) <= 1 && std::abs(clip.height - frame.height) <= 1;
  return same || !frame.plane[0] ? frame : media::Resizer(clip.width, clip.height).resize(frame);
}

/// Throws Error if `decoded` differs from `stored`, or if a neighbour is clearly more similar.
void expect_same(const char* which, const media::Frame& decoded, const media::Frame& stored,
                 const media::Frame& before, const media::Frame& after) {
  // Packed RGB is encoded as YUV, so pixels cannot be compared. Times were compared before.
  if (stored.layout == media::PixelLayout::rgb24) return;
  const media::Frame source = in_size_of(decoded, stored), earlier = in_size_of(decoded, before),
                     later = in_size_of(decoded, after);
  const double here = psnr(decoded, source);
  if (here < kLeastPsnr)
    fail("the clip's {} frame is not the source's (PSNR {:.1f} dB)", which, here);
  const auto expect_worse = [&](const media::Frame& other, const char* where) {
    if (other.plane[0] && other.layout == source.layout && psnr(source, other) < kApart &&
        psnr(decoded, other) > here + kClearly)
      fail("the clip's {} frame is the source's frame {} it", which, where);
  };
  expect_worse(earlier, "before");
  expect_worse(later, "after");
}

bool same_time(std::int64_t a, Rational x, std::int64_t b, Rational y) {
  return static_cast<__int128>(a) * x.num * y.den == static_cast<__int128>(b) * y.num * x.den;
}

}  // namespace

std::string picture_hash(const media::Frame& frame) {
  Hasher hasher;
  for (int p = 0; p < media::plane_count(frame.layout); ++p)
    for (int y = 0; y < media::plane_rows(frame, p); ++y)
      hasher.update(frame.plane[p] + std::ptrdiff_t{y} * frame.stride[p],
                    static_cast<std::size_t>(media::plane_row_bytes(frame, p)));
  return hasher.hex128();
}

void verify_clip(const std::string& mp4, const ClipEvidence& e) {
  media::Decoder decoder(std::string_view(mp4), "the clip",
                         {.keep_hdr = ClipEncoder::keeps(e.first)});
  const Rational base = decoder.info().time_base;
  media::Frame frame, last;
  std::size_t n = 0;
  std::int64_t origin = 0;
  while (decoder.next(frame)) {
    if (n == e.pts.size()) fail("the clip has more frames than its span ({})", e.pts.size());
    if (n == 0) {
      origin = frame.pts;
      const bool only = e.pts.size() == 1;
      expect_same("first", frame, e.first, e.before, only ? e.after : e.second);
    }
    if (!same_time(frame.pts - origin, base, e.pts[n] - e.pts[0], e.time_base))
      fail("frame {} of the clip is not shown at its time", n);
    if (!e.copied.empty() && !e.copied[n].empty() && picture_hash(frame) != e.copied[n])
      fail("frame {} of the clip, which was copied, is not the source's to the bit", n);
    last = frame;
    ++n;
  }
  if (n != e.pts.size()) fail("the clip has {} frames where its span has {}", n, e.pts.size());
  expect_same("last", last, e.last, n == 1 ? e.before : e.second_last, e.after);
  if (!same_time(last.pts + last.duration - origin, base, e.end - e.pts[0], e.time_base))
    fail("the last frame of the clip does not last as long as in the source");
}

}  // namespace vfm::clip

// Plain loops: both ends of the network together are under a percent of it.
// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/haar.h"

#include <bit>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "ops/conv/haar_cuda.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

// Sizes of one call.
struct Layout {
  std::int64_t t = 0, h = 0, w = 0, colours = 0, patch = 0;
  bool start = false;

  std::int64_t frames() const { return start ? 1 + (t - 1) * patch : t * patch; }
  std::int64_t width() const { return w * patch; }
  std::int64_t block() const { return colours * patch * patch * patch; }
  // The frame that holds plane `a` of patch frame `i`; the first p are one.
  std::int64_t frame_of(std::int64_t i, std::int64_t a) const {
    return start ? (i == 0 ? 0 : 1 + (i - 1) * patch + a) : i * patch + a;
  }
  std::int64_t pixel(std::int64_t frame, std::int64_t y, std::int64_t x) const {
    return ((frame * h * patch + y) * width() + x) * colours;
  }
};

// Eight numbers, one `step` after the other, to sums and differences in each of three directions.
void butterfly(float* v, std::int64_t step) {
  for (const int apart : {1, 2, 4})
    for (int i = 0; i < 8; ++i) {
      if (i & apart) continue;
      float &low = v[i * step], &high = v[(i + apart) * step];
      const float sum = low + high, difference = low - high;
      low = sum, high = difference;
    }
}

// One level of a block of n x n x n places of `wide` channels to (n / 2)^3 places of 8 `wide`.
void split_level(const float* from, float* to, std::int64_t n, std::int64_t wide, float scale) {
  const std::int64_t half = n / 2;
  for (std::int64_t i = 0; i < half * half * half; ++i) {
    const std::int64_t a = i / (half * half), b = i / half % half, d = i % half;
    for (std::int64_t k = 0; k < wide; ++k) {
      float* const bands = to + i * 8 * wide + k;
      for (int j = 0; j < 8; ++j)
        bands[j * wide] =
            scale *
            from[(((2 * a + (j >> 2)) * n + 2 * b + (j >> 1 & 1)) * n + 2 * d + (j & 1)) * wide +
                 k];
      butterfly(bands, wide);
    }
  }
}

// Its transpose: the same sums and differences, the other way around.
void merge_level(const float* from, float* to, std::int64_t n, std::int64_t wide, float scale) {
  const std::int64_t half = n / 2;
  for (std::int64_t i = 0; i < half * half * half; ++i) {
    const std::int64_t a = i / (half * half), b = i / half % half, d = i % half;
    for (std::int64_t k = 0; k < wide; ++k) {
      float v[8];
      for (int j = 0; j < 8; ++j)
        v[j] = scale * from[(i * 8 + j) * wide + k];
      butterfly(v, 1);
      for (int j = 0; j < 8; ++j)
        to[(((2 * a + (j >> 2)) * n + 2 * b + (j >> 1 & 1)) * n + 2 * d + (j & 1)) * wide + k] =
            v[j];
    }
  }
}

// bands = split(pixels), each level scaled. Of the first p frames, which are one, all count, or the
// last alone.
void analyse_cpu(const Layout& l, const float* pixels, float* bands, float scale, bool last_only) {
  const std::int64_t p = l.patch;
#pragma omp parallel for schedule(static)
  for (std::int64_t line = 0; line < l.t * l.h; ++line) {
    std::vector<float> a(static_cast<std::size_t>(l.block())), b(a.size());
    const std::int64_t i = line / l.h, y = line % l.h;
    for (std::int64_t x = 0; x < l.w; ++x) {
      float* to = a.data();
      for (std::int64_t plane = 0; plane < p; ++plane)
        for (std::int64_t row = 0; row < p; ++row) {
          const float* from = pixels + l.pixel(l.frame_of(i, plane), y * p + row, x * p);
          const bool absent = last_only && l.start && i == 0 && plane + 1 < p;
          for (std::int64_t k = 0; k < p * l.colours; ++k)
            *to++ = absent ? 0.f : from[k];
        }
      for (std::int64_t n = p, wide = l.colours; n > 1; n /= 2, wide *= 8) {
        split_level(a.data(), b.data(), n, wide, scale);
        a.swap(b);
      }
      std::copy(a.begin(), a.end(), bands + (line * l.w + x) * l.block());
    }
  }
}

// pixels = merge(bands): of the first p frames the last alone, or their sum.
void synthesise_cpu(const Layout& l, const float* bands, float* pixels, float scale,
                    bool last_only) {
  const std::int64_t p = l.patch;
#pragma omp parallel for schedule(static)
  for (std::int64_t line = 0; line < l.t * l.h; ++line) {
    std::vector<float> a(static_cast<std::size_t>(l.block())), b(a.size());
    const std::int64_t i = line / l.h, y = line % l.h;
    for (std::int64_t x = 0; x < l.w; ++x) {
      const float* const at = bands + (line * l.w + x) * l.block();
      std::copy(at, at + l.block(), a.begin());
      for (std::int64_t n = 2, wide = l.block() / 8; n <= p; n *= 2, wide /= 8) {
        // (n / 2)^3 places of 8 `wide` channels become n^3 of `wide`.
        merge_level(a.data(), b.data(), n, wide, scale);
        a.swap(b);
      }
      const float* from = a.data();
      for (std::int64_t plane = 0; plane < p; ++plane)
        for (std::int64_t row = 0; row < p; ++row) {
          float* to = pixels + l.pixel(l.frame_of(i, plane), y * p + row, x * p);
          const bool shared = l.start && i == 0;
          const bool add = shared && !last_only && plane > 0;
          for (std::int64_t k = 0; k < p * l.colours; ++k, ++from)
            if (!(shared && last_only && plane + 1 < p)) to[k] = add ? to[k] + *from : *from;
        }
    }
  }
}

void analyse(const Layout& l, const Tensor& pixels, const Tensor& bands, float scale,
             bool last_only) {
  if constexpr (kHaveCuda)
    if (pixels.device() == Device::cuda)
      return haar_split_cuda(pixels, bands, static_cast<int>(l.patch), l.start, scale, last_only);
  analyse_cpu(l, pixels.data<float>(), bands.data<float>(), scale, last_only);
}

void synthesise(const Layout& l, const Tensor& bands, const Tensor& pixels, float scale,
                bool last_only) {
  if constexpr (kHaveCuda)
    if (bands.device() == Device::cuda)
      return haar_merge_cuda(bands, pixels, static_cast<int>(l.patch), l.start, scale, last_only);
  synthesise_cpu(l, bands.data<float>(), pixels.data<float>(), scale, last_only);
}

void check(const char* name, const Tensor& x, int patch) {
  if (x.dims() != 4 || x.elements() == 0) fail("{} of {}", name, to_string(x.shape()));
  if (patch < 2 || patch > 16 || !std::has_single_bit(static_cast<unsigned>(patch)))
    fail("{} in patches of {}", name, patch);
}

}  // namespace

Tensor haar_analysis(Tape& tape, const Tensor& pixels, int patch, bool start, DType out) {
  check("haar_analysis", pixels, patch);
  const std::int64_t frames = pixels.size(0) + (start ? patch - 1 : 0);
  if (pixels.dtype() != DType::f32 || frames % patch || pixels.size(1) % patch ||
      pixels.size(2) % patch)
    fail("haar_analysis: {} {} is not made of patches of {}", dtype_name(pixels.dtype()),
         to_string(pixels.shape()), patch);
  const Layout l{
      frames / patch, pixels.size(1) / patch, pixels.size(2) / patch, pixels.size(3), patch, start};
  const Tensor bands({l.t, l.h, l.w, l.block()}, DType::f32, pixels.device());
  analyse(l, pixels, bands, 0.125f, false);
  const Tensor result = bands.to(out);
  tape.record(result, {pixels}, [=](Tape& t) {
    const Tensor dy = t.take(result).to(DType::f32);
    const Tensor dx(pixels.shape(), DType::f32, pixels.device());
    synthesise(l, dy, dx, 0.125f, false);
    t.accumulate(pixels, dx);
  });
  return result;
}

Tensor haar_synthesis(Tape& tape, const Tensor& bands, int patch, bool start) {
  check("haar_synthesis", bands, patch);
  const std::int64_t cube = std::int64_t{patch} * patch * patch;
  if (bands.size(3) % cube)
    fail("haar_synthesis: {} channels in patches of {}", bands.size(3), patch);
  const Layout l{bands.size(0), bands.size(1), bands.size(2), bands.size(3) / cube, patch, start};
  const Tensor wide = bands.to(DType::f32);
  const Tensor pixels({l.frames(), l.h * patch, l.width(), l.colours}, DType::f32, bands.device());
  synthesise(l, wide, pixels, 1.f, true);
  tape.record(pixels, {bands}, [=](Tape& t) {
    const Tensor dy = t.take(pixels), dx(bands.shape(), DType::f32, bands.device());
    analyse(l, dy, dx, 1.f, true);
    t.accumulate(bands, dx.to(bands.dtype()));
  });
  return pixels;
}

}  // namespace vfm::ops

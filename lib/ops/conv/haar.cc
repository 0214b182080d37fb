// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/haar.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/error.h"
#include "ops/conv/conv_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

void check(const char* name, const Tensor& x, int patch) {
  if (x.dims() != 4 || x.elements() == 0) fail("{} of {}", name, to_string(x.shape()));
  if (patch < 2 || patch > 16 || !std::has_single_bit(static_cast<unsigned>(patch)))
    fail("{} in patches of {}", name, patch);
}

// A GPU's version writes each level but the last beside, and reads that one for the next.
Touching work_of(const Tensor& from, const Tensor& to, int patch) {
  return Touching(from, to).gpu_scratch([&] {
    return std::size_t(patch > 4 ? 2 : patch > 2 ? 1 : 0) * std::max(from.bytes(), to.bytes());
  });
}

}  // namespace

Tensor haar_analysis(Tape& tape, const Tensor& pixels, int patch, bool start, DType out) {
  check("haar_analysis", pixels, patch);
  const std::int64_t frames = pixels.size(0) + (start ? patch - 1 : 0);
  if (pixels.dtype() != DType::f32 || frames % patch || pixels.size(1) % patch ||
      pixels.size(2) % patch)
    fail("haar_analysis: {} {} is not made of patches of {}", dtype_name(pixels.dtype()),
         to_string(pixels.shape()), patch);
  const std::int64_t cube = std::int64_t{patch} * patch * patch;
  const Tensor bands(
      {frames / patch, pixels.size(1) / patch, pixels.size(2) / patch, pixels.size(3) * cube},
      DType::f32, pixels.device());
  VFM_RUN(work_of(pixels, bands, patch), haar_split, pixels, bands, patch, start, 0.125f, false);
  const Tensor result = bands.to(out);
  tape.record(result, {pixels}, [=](Tape& t) {
    const Tensor dy = t.take(result).to(DType::f32);
    const Tensor dx(pixels.shape(), DType::f32, pixels.device());
    VFM_RUN(work_of(dy, dx, patch), haar_merge, dy, dx, patch, start, 0.125f, false);
    t.accumulate(pixels, dx);
  });
  return result;
}

Tensor haar_synthesis(Tape& tape, const Tensor& bands, int patch, bool start) {
  check("haar_synthesis", bands, patch);
  const std::int64_t cube = std::int64_t{patch} * patch * patch;
  if (bands.size(3) % cube)
    fail("haar_synthesis: {} channels in patches of {}", bands.size(3), patch);
  const std::int64_t frames = bands.size(0) * patch - (start ? patch - 1 : 0);
  const Tensor wide = bands.to(DType::f32);
  const Tensor pixels({frames, bands.size(1) * patch, bands.size(2) * patch, bands.size(3) / cube},
                      DType::f32, bands.device());
  VFM_RUN(work_of(wide, pixels, patch), haar_merge, wide, pixels, patch, start, 1.f, true);
  tape.record(pixels, {bands}, [=](Tape& t) {
    const Tensor dy = t.take(pixels), dx(bands.shape(), DType::f32, bands.device());
    VFM_RUN(work_of(dy, dx, patch), haar_split, dy, dx, patch, start, 1.f, true);
    t.accumulate(bands, dx.to(bands.dtype()));
  });
  return pixels;
}

// The CPU version has plain loops: both ends of the network together are under a percent of it.
namespace {

// Sizes of one call.
struct HaarLayout {
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

// Of the shape of the bands.
HaarLayout layout_of(const Tensor& bands, int patch, bool start) {
  const std::int64_t cube = std::int64_t{patch} * patch * patch;
  return {bands.size(0), bands.size(1), bands.size(2), bands.size(3) / cube, patch, start};
}

}  // namespace

void cpu::haar_split(const Tensor& pixels, const Tensor& bands, int patch, bool start, float scale,
                     bool last_only) {
  const HaarLayout l = layout_of(bands, patch, start);
  const float* const from_pixels = pixels.data<float>();
  float* const to_bands = bands.data<float>();
  const std::int64_t p = l.patch;
#pragma omp parallel for schedule(static)
  for (std::int64_t line = 0; line < l.t * l.h; ++line) {
    std::vector<float> a(static_cast<std::size_t>(l.block())), b(a.size());
    const std::int64_t i = line / l.h, y = line % l.h;
    for (std::int64_t x = 0; x < l.w; ++x) {
      float* to = a.data();
      for (std::int64_t plane = 0; plane < p; ++plane)
        for (std::int64_t row = 0; row < p; ++row) {
          const float* from = from_pixels + l.pixel(l.frame_of(i, plane), y * p + row, x * p);
          const bool absent = last_only && l.start && i == 0 && plane + 1 < p;
          for (std::int64_t k = 0; k < p * l.colours; ++k)
            *to++ = absent ? 0.f : from[k];
        }
      for (std::int64_t n = p, wide = l.colours; n > 1; n /= 2, wide *= 8) {
        split_level(a.data(), b.data(), n, wide, scale);
        a.swap(b);
      }
      std::copy(a.begin(), a.end(), to_bands + (line * l.w + x) * l.block());
    }
  }
}

void cpu::haar_merge(const Tensor& bands, const Tensor& pixels, int patch, bool start, float scale,
                     bool last_only) {
  const HaarLayout l = layout_of(bands, patch, start);
  const float* const from_bands = bands.data<float>();
  float* const to_pixels = pixels.data<float>();
  const std::int64_t p = l.patch;
#pragma omp parallel for schedule(static)
  for (std::int64_t line = 0; line < l.t * l.h; ++line) {
    std::vector<float> a(static_cast<std::size_t>(l.block())), b(a.size());
    const std::int64_t i = line / l.h, y = line % l.h;
    for (std::int64_t x = 0; x < l.w; ++x) {
      const float* const at = from_bands + (line * l.w + x) * l.block();
      std::copy(at, at + l.block(), a.begin());
      for (std::int64_t n = 2, wide = l.block() / 8; n <= p; n *= 2, wide /= 8) {
        // (n / 2)^3 places of 8 `wide` channels become n^3 of `wide`.
        merge_level(a.data(), b.data(), n, wide, scale);
        a.swap(b);
      }
      const float* from = a.data();
      for (std::int64_t plane = 0; plane < p; ++plane)
        for (std::int64_t row = 0; row < p; ++row) {
          float* to = to_pixels + l.pixel(l.frame_of(i, plane), y * p + row, x * p);
          const bool shared = l.start && i == 0;
          const bool add = shared && !last_only && plane > 0;
          for (std::int64_t k = 0; k < p * l.colours; ++k, ++from)
            if (!(shared && last_only && plane + 1 < p)) to[k] = add ? to[k] + *from : *from;
        }
    }
  }
}

}  // namespace vfm::ops

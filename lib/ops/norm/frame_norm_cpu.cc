// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/elementary.h"
#include "ops/cpu/row_loops.h"
#include "ops/norm/frame_norm_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

// The pixels of chunk `chunk` of a frame of so many.
struct Chunk {
  std::int64_t begin, end;
};
VFM_INLINE Chunk chunk_of(std::int64_t pixels, std::int64_t chunk) {
  return {pixels * chunk / kFrameNormChunks, pixels * (chunk + 1) / kFrameNormChunks};
}

// Mean and sum of squared deviations of n numbers, of pieces that stay in cache; combined as Chan,
// Golub and LeVeque (1979) do.
struct Spread {
  double count = 0, mean = 0, squares = 0;
};
VFM_INLINE void merge(Spread& into, double count, double mean, double squares) {
  if (count == 0) return;
  const double all = into.count + count, step = mean - into.mean;
  into.mean += step * count / all;
  into.squares += squares + step * step * into.count * count / all;
  into.count = all;
}

template <class T>
VFM_INLINE void spread_of(const T* x, std::int64_t n, Spread& out) {
  constexpr std::int64_t kPiece = 4096;
  for (std::int64_t first = 0; first < n; first += kPiece) {
    const std::int64_t count = n - first < kPiece ? n - first : kPiece;
    const T* const p = x + first;
    const float mean =
        sum_lanes(count, [&](auto v, std::int64_t i) { return load_as<decltype(v)>(p + i); }) /
        static_cast<float>(count);
    const float squares = sum_lanes(count, [&](auto v, std::int64_t i) {
      v = load_as<decltype(v)>(p + i) - mean;
      return v * v;
    });
    merge(out, static_cast<double>(count), mean, squares);
  }
}

template <class T>
void chunk_sums(const FrameNormArgs& a) {
  const T* const x = static_cast<const T*>(a.x);
  for (std::int64_t t = 0; t < a.frames; ++t) {
#pragma omp parallel for schedule(static) if (a.pixels * a.channels > 16384)
    for (std::int64_t c = 0; c < a.chunks; ++c) {
      const Chunk chunk = chunk_of(a.whole, a.chunk + c);
      Spread part;
      spread_of(x + (t * a.pixels + chunk.begin - a.begin) * a.channels,
                (chunk.end - chunk.begin) * a.channels, part);
      a.sums[t * a.chunks + c] = {part.mean, part.squares};
    }
  }
}

VFM_INLINE float rstd_of(const FrameNormArgs& a, std::int64_t t) {
  return 1.f / __builtin_sqrtf(a.moments[2 * t + 1] + a.epsilon);
}

// 1 / (1 + e^-z), to f32 rounding.
VFM_INLINE float sigmoid(float z) {
  return 1.f / (1.f + exp_f(-z));
}

template <class T>
void forward(const FrameNormArgs& a) {
  const std::int64_t rows = a.frames * a.pixels;
#pragma omp parallel for schedule(static) if (rows * a.channels > 16384)
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t t = row / a.pixels;
    const float mean = a.moments[2 * t], rstd = rstd_of(a, t);
    const T* const x = static_cast<const T*>(a.x) + row * a.channels;
    T* const y = static_cast<T*>(a.y) + row * a.channels;
    if (a.silu) {
#pragma omp simd
      for (std::int64_t i = 0; i < a.channels; ++i) {
        const float z = (load(x + i) - mean) * rstd * a.weight[i] + a.bias[i];
        store(y + i, z * sigmoid(z));
      }
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < a.channels; ++i)
        store(y + i, (load(x + i) - mean) * rstd * a.weight[i] + a.bias[i]);
    }
  }
}

// The gradient of z = n w + b, where n is the normed x, from that of y.
VFM_INLINE float slope_of(bool silu, float z, float dy) {
  if (!silu) return dy;
  const float s = sigmoid(z);
  return dy * s * (1.f + z * (1.f - s));
}

// Sums of a chunk of frame t: dweight and dbias over its pixels, then those of g and g n, g = dz w.
template <class T>
void sum_chunk(const FrameNormArgs& a, std::int64_t t, std::int64_t c) {
  float* const dweight = a.scratch + c * (2 * a.channels + 2);
  float* const dbias = dweight + a.channels;
  for (std::int64_t i = 0; i < 2 * a.channels; ++i)
    dweight[i] = 0;
  const float mean = a.moments[2 * t], rstd = rstd_of(a, t);
  const Chunk chunk = chunk_of(a.pixels, c);
  for (std::int64_t p = chunk.begin; p < chunk.end; ++p) {
    const std::int64_t at = (t * a.pixels + p) * a.channels;
    const T* const x = static_cast<const T*>(a.x) + at;
    const T* const dy = static_cast<const T*>(a.dy) + at;
#pragma omp simd
    for (std::int64_t i = 0; i < a.channels; ++i) {
      const float n = (load(x + i) - mean) * rstd;
      const float dz = slope_of(a.silu, n * a.weight[i] + a.bias[i], load(dy + i));
      dweight[i] += dz * n;
      dbias[i] += dz;
    }
  }
  float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (std::int64_t i = 0; i < a.channels; ++i) {
    sum += a.weight[i] * dbias[i];
    product += a.weight[i] * dweight[i];
  }
  dbias[a.channels] = sum;
  dbias[a.channels + 1] = product;
}

// dx = rstd (g - mean(g) - n mean(g n)).
template <class T>
void backward_frame(const FrameNormArgs& a, std::int64_t t) {
#pragma omp parallel for schedule(static)
  for (std::int64_t c = 0; c < kFrameNormChunks; ++c)
    sum_chunk<T>(a, t, c);
  double sum = 0, product = 0;
  for (std::int64_t c = 0; c < kFrameNormChunks; ++c) {
    const float* const part = a.scratch + c * (2 * a.channels + 2);
    for (std::int64_t i = 0; i < a.channels; ++i) {
      a.dweight[i] += part[i];
      a.dbias[i] += part[a.channels + i];
    }
    sum += part[2 * a.channels];
    product += part[2 * a.channels + 1];
  }
  const double count = static_cast<double>(a.pixels) * static_cast<double>(a.channels);
  const float mean = a.moments[2 * t], rstd = rstd_of(a, t);
  const float mean_g = static_cast<float>(sum / count);
  const float mean_gn = static_cast<float>(product / count);
#pragma omp parallel for schedule(static)
  for (std::int64_t p = 0; p < a.pixels; ++p) {
    const std::int64_t at = (t * a.pixels + p) * a.channels;
    const T* const x = static_cast<const T*>(a.x) + at;
    const T* const dy = static_cast<const T*>(a.dy) + at;
    T* const dx = static_cast<T*>(a.dx) + at;
#pragma omp simd
    for (std::int64_t i = 0; i < a.channels; ++i) {
      const float n = (load(x + i) - mean) * rstd;
      const float dz = slope_of(a.silu, n * a.weight[i] + a.bias[i], load(dy + i));
      store(dx + i, rstd * (dz * a.weight[i] - mean_g - n * mean_gn));
    }
  }
}

}  // namespace

void frame_chunk_sums(const FrameNormArgs& args) {
  by_type(args.type, [&](auto type) { chunk_sums<decltype(type)>(args); });
}

void join_frame_chunks(const FrameNormArgs& args) {
  for (std::int64_t t = 0; t < args.frames; ++t) {
    Spread all;
    for (std::int64_t c = 0; c < kFrameNormChunks; ++c) {
      const Chunk chunk = chunk_of(args.whole, c);
      const ChunkSums& part = args.sums[t * kFrameNormChunks + c];
      merge(all, static_cast<double>((chunk.end - chunk.begin) * args.channels), part.mean,
            part.squares);
    }
    args.moments[2 * t] = static_cast<float>(all.mean);
    args.moments[2 * t + 1] = static_cast<float>(all.squares / all.count);
  }
}

void frame_moments(const FrameNormArgs& args) {
  const std::int64_t elements = args.pixels * args.channels;
  for (std::int64_t t = 0; t < args.frames; ++t) {
    ChunkSums sums[kFrameNormChunks];
    FrameNormArgs frame = args;
    frame.frames = 1, frame.whole = args.pixels;
    frame.chunks = kFrameNormChunks, frame.sums = sums;
    frame.moments = args.moments + 2 * t;
    by_type(args.type, [&](auto type) {
      frame.x = static_cast<const decltype(type)*>(args.x) + t * elements;
    });
    frame_chunk_sums(frame);
    join_frame_chunks(frame);
  }
}

void frame_norm_forward(const FrameNormArgs& args) {
  by_type(args.type, [&](auto type) { forward<decltype(type)>(args); });
}

void frame_norm_backward(const FrameNormArgs& args) {
  for (std::int64_t t = 0; t < args.frames; ++t)
    by_type(args.type, [&](auto type) { backward_frame<decltype(type)>(args, t); });
}

}  // namespace vfm::ops::VFM_ISA

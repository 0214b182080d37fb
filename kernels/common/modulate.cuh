// Gated residual, norm and modulation (modulate.h) of a token's row in a block, for kernels whose
// result is in the compute type or E4M3. Device code, and the host's choice of how to split a row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../modulate.h"
#include "common/reduce.cuh"
#include "common/vector.cuh"

namespace vfm::kernels {

/// Threads of a block, and the number of elements that they process at a time.
inline constexpr int kModulateThreads = 256, kModulateStep = kModulateThreads * 4;

__device__ __forceinline__ float4 fma4(float4 a, float4 b, float4 c) {
  return {a.x * b.x + c.x, a.y * b.y + c.y, a.z * b.z + c.z, a.w * b.w + c.w};
}
__device__ __forceinline__ float sum4(float4 v) {
  return (v.x + v.y) + (v.z + v.w);
}

__device__ __forceinline__ float deviation4(float4 v, float mean) {
  const float4 d = {v.x - mean, v.y - mean, v.z - mean, v.w - mean};
  return sum4({d.x * d.x, d.y * d.y, d.z * d.z, d.w * d.w});
}

/// Norms and modulates elements of the stream, with the same bits in every kernel.
__device__ __forceinline__ float4 modulated4(float4 v, float mean, float rstd, float4 shift,
                                             float4 scale) {
  const float4 n = {(v.x - mean) * rstd, (v.y - mean) * rstd, (v.z - mean) * rstd,
                    (v.w - mean) * rstd};
  return fma4(n, {1 + scale.x, 1 + scale.y, 1 + scale.z, 1 + scale.w}, shift);
}

/// A thread's part of a row: at most kQuads groups of four elements, kModulateStep apart. All loads
/// come before all stores: the stream may be x, so the compiler cannot know that a load need not
/// wait for a store.
template <class T, int kQuads>
struct ModulatePart {
  const ModulateForward& c;
  std::int64_t token;
  int row;
  float4 v[kQuads];

  template <class F>
  __device__ __forceinline__ void each(int first, const F& f) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i)
      if (const int at = first + i * kModulateStep; at < c.width) f(i, at);
  }
  __device__ __forceinline__ void load(int first, const float* from) {
    each(first, [&](int i, int at) { v[i] = load4(from + token * c.width + at); });
  }

  /// Computes x + gate * branch + extra and writes it to the stream if not null; returns the sum.
  __device__ __forceinline__ float add(int first) {
    load(first, c.x);
    if (c.branch) {
      const float* gate = c.gate + row * c.gate_stride;
      const T* branch = static_cast<const T*>(c.branch) + token * c.width;
      each(first, [&](int i, int at) { v[i] = fma4(load4(gate + at), load4(branch + at), v[i]); });
    }
    if (c.extra) {
      const float* extra = c.extra + token * c.width;
      each(first, [&](int i, int at) { v[i] = fma4(load4(extra + at), {1, 1, 1, 1}, v[i]); });
    }
    float sum = 0;
    each(first, [&](int i, int at) {
      if (c.stream) store4(c.stream + token * c.width + at, v[i]);
      sum += sum4(v[i]);
    });
    return sum;
  }

  __device__ __forceinline__ float squares(int first, float mean) {
    float sum = 0;
    each(first, [&](int i, int) { sum += deviation4(v[i], mean); });
    return sum;
  }

  /// Calls use(column, four elements) for all groups. Loads the tables for three or four groups at
  /// once, as there are not enough registers for six.
  template <class F>
  __device__ __forceinline__ void modulate(int first, float mean, float rstd, const F& use) {
    constexpr int kAtOnce = kQuads == 6 ? 3 : kQuads;
    const float* table = c.modulation + row * c.modulation_stride;
    float4 shift[kAtOnce], scale[kAtOnce];
#pragma unroll
    for (int begin = 0; begin < kQuads; begin += kAtOnce) {
      const auto each_now = [&](const auto& f) {
        each(first, [&](int i, int at) {
          if (i >= begin && i < begin + kAtOnce) f(i, i - begin, at);
        });
      };
      each_now([&](int, int j, int at) {
        shift[j] = load4(table + at);
        scale[j] = load4(table + c.width + at);
      });
      each_now(
          [&](int i, int j, int at) { use(at, modulated4(v[i], mean, rstd, shift[j], scale[j])); });
    }
  }
};

/// Computes this block's token: writes the stream, and if `norms`, writes the moments and calls
/// use(column, four elements of the result). The row stays in registers, kQuads groups per thread.
/// If kWide, the row is too wide for that: each thread has several parts and rereads them from the
/// stream. `shared` has a float for each warp.
template <class T, int kQuads, bool kWide, class F>
__device__ __forceinline__ void modulate_token(const ModulateForward& c, bool norms, float* shared,
                                               const F& use) {
  const std::int64_t token = blockIdx.x;
  ModulatePart<T, kQuads> part{c, token, c.rows[token], {}};
  const auto each_part = [&](const auto& f) {
    int first = static_cast<int>(threadIdx.x) * 4;
    do
      f(first);
    while (kWide && (first += kQuads * kModulateStep) < c.width);
  };
  float sum = 0, squares = 0;
  each_part([&](int first) { sum += part.add(first); });
  if (!norms) return;
  const float mean =
      c.centred ? block_sum<kModulateThreads>(sum, shared) / static_cast<float>(c.width) : 0.f;
  // The variance is around the mean; a difference of squares would cancel.
  each_part([&](int first) {
    if (kWide) part.load(first, c.stream ? c.stream : c.x);
    squares += part.squares(first, mean);
  });
  const float variance = block_sum<kModulateThreads>(squares, shared) / static_cast<float>(c.width);
  const float rstd = 1.f / sqrtf(variance + c.epsilon);
  if (threadIdx.x == 0) {
    c.moments[2 * token] = mean;
    c.moments[2 * token + 1] = rstd;
  }
  each_part([&](int first) {
    if (kWide) part.load(first, c.stream ? c.stream : c.x);
    part.modulate(first, mean, rstd, use);
  });
}

/// How a row is split: groups of four per thread, and whether a thread has several such parts.
template <int kGroups, bool kSeveral>
struct RowCut {
  static constexpr int kQuads = kGroups;
  static constexpr bool kWide = kSeveral;
};

/// Host code: calls f(RowCut) for rows of this width.
template <class F>
int for_row(int width, const F& f) {
  const int quads = (width + kModulateStep - 1) / kModulateStep;
  if (quads <= 1) return f(RowCut<1, false>{});
  if (quads <= 2) return f(RowCut<2, false>{});
  if (quads <= 4) return f(RowCut<4, false>{});
  if (quads <= 6) return f(RowCut<6, false>{});
  return f(RowCut<4, true>{});
}

inline bool modulate_takes(const ModulateForward& c) {
  return c.width > 0 && c.width % 4 == 0 && c.tokens >= 0 && c.tokens <= 0x7fffffff;
}

}  // namespace vfm::kernels

// A tile is some outputs of some rows, each with a register of sums of its own, which gets one
// product after the other: so how large a tile is changes no bit.
// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/fetch_ahead.h"
#include "ops/matmul/matmul_kernels.h"
#include "ops/matmul/row_tiles.h"

namespace vfm::ops::VFM_ISA {
namespace {

struct Half {
  std::uint16_t bits;
};

VFM_INLINE FloatLanes widen_lanes(const float* p) {
  return load_as<Native>(p);
}
VFM_INLINE FloatLanes widen_lanes(const bf16* p) {
  return (FloatLanes)(widen_halves(p) << 16);
}
VFM_INLINE FloatLanes widen_lanes(const std::int8_t* p) {
  return lanes_of(widen_bytes(p));
}
// The bits of the magnitude, moved, are those of the number times 2^-112, subnormal ones too.
VFM_INLINE FloatLanes widen_lanes(const Half* p) {
  const auto bits = (NativeBits)widen_halves(&p->bits);
  const NativeBits magnitude = (bits & 0x7fffu) << 13, sign = (bits & 0x8000u) << 16;
  const NativeBits finite = (NativeBits)((FloatLanes)magnitude * 0x1p112f);
  const NativeBits not_finite = magnitude | 0x7f800000u;
  return (FloatLanes)((magnitude >= (0x7c00u << 13) ? not_finite : finite) | sign);
}

// One copy of it, so that no two tiles round it in two ways.
__attribute__((noinline)) float few_rows_finish(const FewRowsArgs& a, float sum,
                                                std::int64_t output) {
  const float scaled = a.scales ? sum * a.scales[output] : sum;
  return a.bias ? scaled + a.bias[output] : scaled;
}

template <class T>
struct FewRowsTile {
  static constexpr int kOutputs = 3;
  template <int C, int R>
  VFM_INLINE void make(const FewRowsArgs& a, std::int64_t row, std::int64_t first) {
    const std::int64_t k = a.columns;
    const T* const w = static_cast<const T*>(a.w) + first * k;
    const float* const x = a.x + row * k;
    FloatLanes sums[C][R] = {};
    const auto add = [&](const T* ws, std::int64_t w_stride, const float* xs,
                         std::int64_t x_stride) {
      FloatLanes of_w[C];
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c)
        of_w[c] = widen_lanes(ws + c * w_stride);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const FloatLanes of_x = load_as<Native>(xs + r * x_stride);
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c)
          sums[c][r] += of_w[c] * of_x;
      }
    };
    constexpr std::int64_t kLine = kLineBytes / static_cast<std::int64_t>(sizeof(T));
    static_assert(kLine % kWidth == 0);
    std::int64_t i = 0;
    for (; i + kLine <= k; i += kLine) {
      for (int c = 0; c < C; ++c)
        fetch_ahead(w + c * k + i, kLineBytes);
      for (int j = 0; j < kLine; j += kWidth)
        add(w + i + j, k, x + i + j, k);
    }
    for (; i + kWidth <= k; i += kWidth)
      add(w + i, k, x + i, k);
    if (i < k) {  // the end, beside zeros
      T ws[C * kWidth] = {};
      float xs[R * kWidth] = {};
      for (std::int64_t j = i; j < k; ++j) {
        for (int c = 0; c < C; ++c)
          ws[c * kWidth + j - i] = w[c * k + j];
        for (int r = 0; r < R; ++r)
          xs[r * kWidth + j - i] = x[r * k + j];
      }
      add(ws, kWidth, xs, kWidth);
    }
    for (int c = 0; c < C; ++c)
      for (int r = 0; r < R; ++r)
        a.y[(row + r) * a.outputs + first + c] =
            few_rows_finish(a, lanes_total(sums[c][r]), first + c);
  }
};

}  // namespace

void few_rows(const FewRowsArgs& args) {
  switch (args.type) {
    case DType::bf16:
      return make_row_tiles<FewRowsTile<bf16>>(args);
    case DType::f16:
      return make_row_tiles<FewRowsTile<Half>>(args);
    case DType::u8:
      return make_row_tiles<FewRowsTile<std::int8_t>>(args);
    default:
      return make_row_tiles<FewRowsTile<float>>(args);
  }
}

}  // namespace vfm::ops::VFM_ISA

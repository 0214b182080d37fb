// A format unpacks blocks of C outputs side by side into lanes of numbers. A tile is some outputs
// of some rows, each with a register of sums of its own, which gets one product after the other: so
// how large a tile is changes no bit.
// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/fetch_ahead.h"
#include "ops/matmul/matmul_kernels.h"
#include "ops/matmul/row_tiles.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace vfm::ops::VFM_ISA {
namespace {

using BlockLanes = FloatLanes;

VFM_INLINE float block_half(const std::uint8_t* p) {
  std::uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof bits);
#ifdef __F16C__
  return _cvtsh_ss(bits);
#else
  // The bits of the magnitude, moved, are those of the number times 2^-112, subnormal ones too.
  const std::uint32_t magnitude = (bits & 0x7fffu) << 13, sign = (bits & 0x8000u) << 16;
  const std::uint32_t finite = float_to_bits(bits_to_float(magnitude) * 0x1p112f);
  const bool is_finite = magnitude < (0x7c00u << 13);
  return bits_to_float((is_finite ? finite : magnitude | 0x7f800000u) | sign);
#endif
}
struct BlocksQ8 {
  static constexpr int kElements = 32, kBytes = 34, kOutputs = 3;
  /// use(i, w) for all lanes of C blocks: w[c] are the numbers from i on of block c.
  template <int C, class Use>
  VFM_INLINE void each(const std::uint8_t* const (&blocks)[C], const Use& use) {
    float d[C];
    for (int c = 0; c < C; ++c)
      d[c] = block_half(blocks[c]);
#pragma GCC unroll 8
    for (int i = 0; i < kElements; i += kWidth) {
      BlockLanes w[C];
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) {
        const auto* const q = reinterpret_cast<const std::int8_t*>(blocks[c] + 2);
        w[c] = lanes_of(widen_bytes(q + i)) * d[c];
      }
      use(i, w);
    }
  }
};

/// Scales and offsets of Q4_K and Q5_K. Number i of the first four is the lower 6 bits of byte i,
/// its offset those of byte i + 4; of the last four the lower bits are in the halves of byte i + 4,
/// the upper ones in the upper 2 bits of bytes i - 4 and i.
VFM_INLINE void unpack_scales(const std::uint8_t* block, float (&scales)[8], float (&offsets)[8]) {
  std::uint32_t from[3];
  __builtin_memcpy(from, block + 4, sizeof from);
  const std::uint32_t words[4] = {
      from[0] & 0x3f3f3f3fu, (from[2] & 0x0f0f0f0fu) | ((from[0] >> 6 & 0x03030303u) << 4),
      from[1] & 0x3f3f3f3fu, (from[2] >> 4 & 0x0f0f0f0fu) | ((from[1] >> 6 & 0x03030303u) << 4)};
  std::uint8_t bytes[16];
  __builtin_memcpy(bytes, words, sizeof bytes);
  const float d = block_half(block), m = block_half(block + 2);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    scales[i] = d * static_cast<float>(bytes[i]);
    offsets[i] = m * static_cast<float>(bytes[8 + i]);
  }
}

struct BlocksQ4K {
  static constexpr int kElements = 256, kBytes = 144, kOutputs = 2;
  template <int C, class Use>
  VFM_INLINE void each(const std::uint8_t* const (&blocks)[C], const Use& use) {
    float scales[C][8], offsets[C][8];
    for (int c = 0; c < C; ++c)
      unpack_scales(blocks[c], scales[c], offsets[c]);
    for (int part = 0; part < 4; ++part)  // of 64: 32 in lower halves of bytes, 32 in upper ones
#pragma GCC unroll 8
      for (int i = 0; i < 32; i += kWidth) {
        BlockLanes low[C], high[C];
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) {
          const IntLanes q = widen_bytes(blocks[c] + 16 + 32 * part + i);
          const float* const s = scales[c] + 2 * part;
          const float* const o = offsets[c] + 2 * part;
          low[c] = lanes_of(q & 15) * s[0] - o[0];
          high[c] = lanes_of(q >> 4) * s[1] - o[1];
        }
        use(64 * part + i, low);
        use(64 * part + 32 + i, high);
      }
  }
};

struct BlocksQ5K {
  static constexpr int kElements = 256, kBytes = 176, kOutputs = 2;
  template <int C, class Use>
  VFM_INLINE void each(const std::uint8_t* const (&blocks)[C], const Use& use) {
    float scales[C][8], offsets[C][8];
    for (int c = 0; c < C; ++c)
      unpack_scales(blocks[c], scales[c], offsets[c]);
    for (int part = 0; part < 4; ++part)  // of 64: as in Q4_K, with bits 2 part and 2 part + 1
#pragma GCC unroll 8
      for (int i = 0; i < 32; i += kWidth) {
        BlockLanes low[C], high[C];
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) {
          const IntLanes q = widen_bytes(blocks[c] + 48 + 32 * part + i);
          const IntLanes fifth = widen_bytes(blocks[c] + 16 + i) >> 2 * part;
          const float* const s = scales[c] + 2 * part;
          const float* const o = offsets[c] + 2 * part;
          low[c] = lanes_of((q & 15) | (fifth & 1) << 4) * s[0] - o[0];
          high[c] = lanes_of(q >> 4 | (fifth >> 1 & 1) << 4) * s[1] - o[1];
        }
        use(64 * part + i, low);
        use(64 * part + 32 + i, high);
      }
  }
};

struct BlocksQ6K {
  static constexpr int kElements = 256, kBytes = 210, kOutputs = 2;
  template <int C, class Use>
  VFM_INLINE void each(const std::uint8_t* const (&blocks)[C], const Use& use) {
    float scales[C][16];
    for (int c = 0; c < C; ++c) {
      const float d = block_half(blocks[c] + 208);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i)
        scales[c][i] = d * static_cast<float>(static_cast<std::int8_t>(blocks[c][192 + i]));
    }
    for (int half = 0; half < 2; ++half)
#pragma GCC unroll 8
      for (int i = 0; i < 32; i += kWidth) {
        BlockLanes w[4][C];
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) {
          const IntLanes first = widen_bytes(blocks[c] + 64 * half + i);
          const IntLanes second = widen_bytes(blocks[c] + 64 * half + 32 + i);
          const IntLanes upper = widen_bytes(blocks[c] + 128 + 32 * half + i);
          const float* const s = scales[c] + 8 * half + i / 16;
          w[0][c] = lanes_of(((first & 15) | (upper & 3) << 4) - 32) * s[0];
          w[1][c] = lanes_of(((second & 15) | (upper >> 2 & 3) << 4) - 32) * s[2];
          w[2][c] = lanes_of((first >> 4 | (upper >> 4 & 3) << 4) - 32) * s[4];
          w[3][c] = lanes_of((second >> 4 | upper >> 6 << 4) - 32) * s[6];
        }
#pragma GCC unroll 4
        for (int quarter = 0; quarter < 4; ++quarter)
          use(128 * half + 32 * quarter + i, w[quarter]);
      }
  }
};

template <class F>
struct BlockRowsTile {
  static constexpr int kOutputs = F::kOutputs;
  template <int C, int R>
  VFM_INLINE void make(const BlockRowsArgs& a, std::int64_t row, std::int64_t first) {
    const std::int64_t k = a.columns, count = k / F::kElements, stride = count * F::kBytes;
    const float* const x = a.x + row * k;
    BlockLanes sums[C][R] = {};
    for (std::int64_t block = 0; block < count; ++block) {
      const std::uint8_t* blocks[C];
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) {
        blocks[c] = a.w + (first + c) * stride + block * F::kBytes;
        fetch_ahead(blocks[c], F::kBytes);
      }
      const float* const xs = x + block * F::kElements;
      F::each(
          blocks, [&](int i, const BlockLanes(&w)[C]) __attribute__((always_inline)) {
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) {
              const BlockLanes of_x = load_as<Native>(xs + r * k + i);
#pragma GCC unroll 4
              for (int c = 0; c < C; ++c)
                sums[c][r] += w[c] * of_x;
            }
          });
    }
    for (int c = 0; c < C; ++c)
      for (int r = 0; r < R; ++r) {
        const float sum = lanes_total(sums[c][r]);
        static_cast<float*>(a.y)[(row + r) * a.outputs + first + c] =
            a.bias ? sum + a.bias[first + c] : sum;
      }
  }
};

template <class F, class T>
void block_numbers_of(const BlockRowsArgs& a, T* y) {
  const std::int64_t count = a.columns / F::kElements;
#pragma omp parallel for schedule(static) if (a.outputs * a.columns > kAlone)
  for (std::int64_t row = 0; row < a.outputs; ++row)
    for (std::int64_t block = 0; block < count; ++block) {
      const std::uint8_t* const one[1] = {a.w + (row * count + block) * F::kBytes};
      T* const to = y + row * a.columns + block * F::kElements;
      F::each(
          one, [&](int i, const BlockLanes(&w)[1])
                   __attribute__((always_inline)) { store(to + i, (Native)w[0]); });
    }
}

template <class Body>
VFM_INLINE void by_format(BlockFormat format, Body body) {
  if (format == BlockFormat::q8_0) return body(BlocksQ8{});
  if (format == BlockFormat::q4_k) return body(BlocksQ4K{});
  if (format == BlockFormat::q5_k) return body(BlocksQ5K{});
  body(BlocksQ6K{});
}

}  // namespace

void few_rows_of_blocks(const BlockRowsArgs& a) {
  by_format(a.format, [&](auto f) { make_row_tiles<BlockRowsTile<decltype(f)>>(a); });
}

void dequantize_blocks(const BlockRowsArgs& a, DType type) {
  by_format(a.format, [&](auto f) {
    by_type(type,
            [&](auto t) { block_numbers_of<decltype(f)>(a, static_cast<decltype(t)*>(a.y)); });
  });
}

}  // namespace vfm::ops::VFM_ISA

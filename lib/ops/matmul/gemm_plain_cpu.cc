// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/block_gemm.h"
#include "ops/cpu/row_loops.h"
#include "ops/matmul/matmul_kernels.h"

namespace vfm::ops::VFM_ISA {
namespace {

// to[i * width + j] = from(i, j), where j goes along memory.
template <class T>
void pack_along(const T* from, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                std::int64_t width, float* to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const T* const in = from + i * stride;
    float* const out = to + i * width;
    for_lanes(columns,
              [&](auto v, std::int64_t j) { store(out + j, load_as<decltype(v)>(in + j)); });
    for (std::int64_t j = columns; j < width; ++j)
      out[j] = 0;
  }
}

// The same where i goes along memory: sixteen lines at a time, so that what is written lies
// together.
template <class T>
void pack_across(const T* from, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                 std::int64_t width, float* to) {
  for (std::int64_t j = 0; j < width; j += 16)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t lane = j; lane < j + 16; ++lane)
        to[i * width + lane] = lane < columns ? load(from + lane * stride + i) : 0.f;
}

template <class T>
void pack_right(const GemmOperand& b, std::int64_t first, std::int64_t depth, std::int64_t columns,
                std::int64_t width, float* to) {
  const T* const from = static_cast<const T*>(b.data) + first * b.row_stride;
  if (b.column_stride == 1) {
    pack_along(from, b.row_stride, depth, columns, width, to);
  } else {
    pack_across(from, b.column_stride, depth, columns, width, to);
  }
}

// A is packed in the order in which it lies in memory; the product takes either.
template <class T>
void pack_left(const GemmOperand& a, std::int64_t first, std::int64_t depth, std::int64_t rows,
               float* to) {
  const T* const from = static_cast<const T*>(a.data) + first * a.column_stride;
  if (a.column_stride == 1) {
    pack_along(from, a.row_stride, rows, depth, depth, to);
  } else {
    pack_along(from, a.column_stride, depth, rows, rows, to);
  }
}

template <class T>
void write(const GemmTile& t, const float* sums, std::int64_t width) {
  for (std::int64_t i = 0; i < t.rows; ++i) {
    T* const out = static_cast<T*>(t.c) + i * t.c_stride;
    const float* const in = sums + i * width;
    for_lanes(t.columns, [&](auto v, std::int64_t j) {
      using V = decltype(v);
      const V sum = load_as<V>(in + j);
      store(out + j, t.add ? load_as<V>(out + j) + sum : sum);
    });
  }
}

}  // namespace

void gemm_tile(const GemmTile& t) {
  float* const sums = t.room;
  float* const left = sums + kGemmTileRows * kGemmTileColumns;
  float* const right = left + kGemmTileRows * kGemmTileDepth;
  const std::int64_t width = (t.columns + 15) / 16 * 16;
  if (t.depth == 0)
    for (std::int64_t i = 0; i < t.rows * width; ++i)
      sums[i] = 0;
  for (std::int64_t first = 0; first < t.depth; first += kGemmTileDepth) {
    const std::int64_t depth = t.depth - first < kGemmTileDepth ? t.depth - first : kGemmTileDepth;
    by_type(t.a.type,
            [&](auto type) { pack_left<decltype(type)>(t.a, first, depth, t.rows, left); });
    by_type(t.b.type, [&](auto type) {
      pack_right<decltype(type)>(t.b, first, depth, t.columns, width, right);
    });
    const bool by_rows = t.a.column_stride == 1;
    block_gemm(t.rows, width, depth, left, by_rows ? depth : 1, by_rows ? 1 : t.rows, right, width,
               sums, width, first > 0);
  }
  by_type(t.c_type, [&](auto type) { write<decltype(type)>(t, sums, width); });
}

}  // namespace vfm::ops::VFM_ISA

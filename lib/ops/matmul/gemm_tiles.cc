// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/gemm_tiles.h"

#include <omp.h>

#include <algorithm>

#include "base/error.h"
#include "ops/cpu/isa.h"

namespace vfm::ops {
namespace {

std::int64_t up_to(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

std::int64_t packed_floats(std::int64_t m, std::int64_t k) {
  return std::min(kTileRows, up_to(m, kTileStrip)) * up_to(k, kTileStrip) / 2;
}

// The sums of a block's columns, and the block of B.
std::int64_t floats_of_thread(std::int64_t m) {
  return std::min(kTileRows, up_to(m, kTileStrip)) * kTileColumns + kTileColumns * kTileDepth / 2;
}

}  // namespace

bool has_gemm_tiles(const Matrix& a, const Matrix& b) {
#if defined(VFM_HAVE_X86_LEVELS)
  return a.dtype == DType::bf16 && !a.transposed && b.transposed && isa() == Isa::amx;
#else
  return (void)a, (void)b, false;
#endif
}

std::int64_t gemm_tiles_scratch(std::int64_t m, std::int64_t, std::int64_t k) {
  return packed_floats(m, k) + omp_get_max_threads() * floats_of_thread(m);
}

void gemm_tiles(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
                void* c, DType c_dtype, std::int64_t c_stride, bool add) {
#if defined(VFM_HAVE_X86_LEVELS)
  const Tensor scratch({gemm_tiles_scratch(m, n, k)});
  amx::gemm_tiles({m, n, k, static_cast<const std::uint16_t*>(a.data),
                   static_cast<const std::uint16_t*>(b.data), a.stride, b.stride, c, c_stride,
                   c_dtype == DType::bf16, add, scratch.data<float>(),
                   scratch.data<float>() + packed_floats(m, k), floats_of_thread(m)});
#else
  (void)m, (void)n, (void)k, (void)a, (void)b, (void)c, (void)c_dtype, (void)c_stride, (void)add;
  fail("this machine has no tiles");
#endif
}

}  // namespace vfm::ops

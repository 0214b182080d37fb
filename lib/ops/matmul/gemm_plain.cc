// SPDX-License-Identifier: Apache-2.0
#include <omp.h>

#include <algorithm>

#include "ops/matmul/gemm_cpu.h"
#include "ops/matmul/matmul_kernels.h"

namespace vfm::ops {
namespace {

GemmOperand operand(const Matrix& matrix) {
  return {matrix.data, matrix.dtype, matrix.transposed ? 1 : matrix.stride,
          matrix.transposed ? matrix.stride : 1};
}

GemmOperand shifted(GemmOperand from, std::int64_t row, std::int64_t column) {
  const std::int64_t elements = row * from.row_stride + column * from.column_stride;
  from.data = static_cast<const std::byte*>(from.data) + elements * dtype_size(from.type);
  return from;
}

int threads_of(std::int64_t m, std::int64_t n) {
  const std::int64_t down = (m + kGemmTileRows - 1) / kGemmTileRows;
  const std::int64_t across = (n + kGemmTileColumns - 1) / kGemmTileColumns;
  return static_cast<int>(std::clamp<std::int64_t>(down * across, 1, omp_get_max_threads()));
}

}  // namespace

void gemm_plain(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
                void* c, DType c_dtype, std::int64_t c_stride, bool add) {
  const GemmOperand left = operand(a), right = operand(b);
  const std::int64_t down = (m + kGemmTileRows - 1) / kGemmTileRows;
  const std::int64_t across = (n + kGemmTileColumns - 1) / kGemmTileColumns;
  const int threads = threads_of(m, n);
  const Tensor room({threads, kGemmTileRoom});
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::int64_t tile = 0; tile < down * across; ++tile) {
    // Neighbours in time share columns: their part of B is in a cache.
    const std::int64_t i = tile % down * kGemmTileRows, j = tile / down * kGemmTileColumns;
    GemmTile job;
    job.rows = std::min(kGemmTileRows, m - i);
    job.columns = std::min(kGemmTileColumns, n - j);
    job.depth = k;
    job.a = shifted(left, i, 0);
    job.b = shifted(right, 0, j);
    job.c = static_cast<std::byte*>(c) +
            static_cast<std::size_t>(i * c_stride + j) * dtype_size(c_dtype);
    job.c_type = c_dtype;
    job.c_stride = c_stride;
    job.add = add;
    job.room = room.data<float>() + omp_get_thread_num() * kGemmTileRoom;
    cpu::gemm_tile(job);
  }
}

#if !VFM_HAVE_ONEDNN
void gemm_cpu(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
              void* c, DType c_dtype, std::int64_t c_stride, bool add) {
  gemm_plain(m, n, k, a, b, c, c_dtype, c_stride, add);
}
std::int64_t gemm_scratch(std::int64_t m, std::int64_t n, std::int64_t, DType, DType) {
  return threads_of(m, n) * kGemmTileRoom;
}
#endif

}  // namespace vfm::ops

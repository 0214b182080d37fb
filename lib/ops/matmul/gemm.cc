// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/gemm.h"

#include <algorithm>

#include "base/error.h"
#include "base/float8.h"
#include "base/format.h"
#include "ops/determinism.h"
#include "ops/matmul/gemm_cpu.h"
#include "ops/matmul/gemm_tiles.h"
#include "ops/matmul/matmul_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

void check_fp8(std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b, const void* c,
               std::int64_t c_stride, bool add) {
  const auto fits = [](const Matrix& x) {
    return x.scale != nullptr && x.stride % kFp8Multiple == 0 &&
           reinterpret_cast<std::uintptr_t>(x.data) % kFp8Multiple == 0;
  };
  if (add || a.transposed || !b.transposed || n % kFp8Multiple || k % kFp8Multiple || !fits(a) ||
      !fits(b) || c_stride % kFp8Multiple || reinterpret_cast<std::uintptr_t>(c) % kFp8Multiple)
    fail(
        "no product of F8_E4M3 with n {}, k {}, strides {}, {} and {}: they must be multiples of "
        "{}, only B transposed, nothing added, both operands scaled",
        n, k, a.stride, b.stride, c_stride, kFp8Multiple);
}

/// Returns the number of floats of scratch memory of gemm_fp8(): all operands, widened.
std::int64_t gemm_fp8_scratch(std::int64_t m, std::int64_t n, std::int64_t k) {
  return m * k + n * k + m * n;
}

Touching work_of(Device device, std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
                 const Matrix& b, DType c_dtype, std::int64_t c_stride, bool add) {
  if (device != Device::meta) return device;
  const auto bytes = [](std::int64_t rows, std::int64_t columns, DType dtype) {
    return static_cast<double>(rows) * static_cast<double>(columns) *
           static_cast<double>(dtype_size(dtype));
  };
  Work work{0, bytes(m, k, a.dtype) + bytes(k, n, b.dtype) + (add ? 2 : 1) * bytes(m, n, c_dtype)};
  if (layout_device(device) == Device::cuda) work.workspace = kGemmWorkspace;
  return Touching(device, work)
      .kind(WorkKind::products, a.dtype)
      .products(static_cast<double>(m), static_cast<double>(n), static_cast<double>(k))
      .cpu_scratch([&] {
        if (a.dtype == DType::f8e4m3) return gemm_fp8_scratch(m, n, k);
        return has_gemm_tiles(a, b) ? gemm_tiles_scratch(m, n, k)
                                    : gemm_scratch(m, n, k, a.dtype, c_dtype);
      })
      .gpu_scratch([&] {
        // What is added to must stay while algorithms are timed.
        const bool timed =
            add && !deterministic() && first_on_meta(vfm::format("product {} {} {}", m, n, k));
        return timed ? bytes(m, c_stride, c_dtype) : 0;
      });
}

Tensor widen(const Matrix& matrix, std::int64_t rows, std::int64_t width) {
  const Tensor wide({rows, width});
  const auto* codes = static_cast<const std::uint8_t*>(matrix.data);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < width; ++j)
      wide.data<float>()[i * width + j] = f8e4m3_to_float(codes[i * matrix.stride + j]);
  return wide;
}

/// C = A B on the CPU, as a reference for the GPU; slower than bf16. In f32 products of two codes
/// are exact. Only the sums, and the sums times the scales, are rounded.
void gemm_fp8(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
              void* c, DType c_dtype, std::int64_t c_stride) {
  const Tensor wide_a = widen(a, m, k), wide_b = widen(b, n, k), sums({m, n});
  gemm_cpu(m, n, k, {wide_a.raw(), DType::f32, k, false}, {wide_b.raw(), DType::f32, k, true},
           sums.raw(), DType::f32, n, false);
  const float scale = *a.scale * *b.scale;
  for (float& v : sums.floats())
    v *= scale;
  for (std::int64_t i = 0; i < m; ++i) {
    const float* from = sums.data<float>() + i * n;
    if (c_dtype == DType::f32)
      std::copy(from, from + n, static_cast<float*>(c) + i * c_stride);
    else
      convert_f32_to_bf16(from, static_cast<std::uint16_t*>(c) + i * c_stride, n);
  }
}

}  // namespace

void gemm(Device device, std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
          const Matrix& b, void* c, DType c_dtype, std::int64_t c_stride, bool add) {
  if (m == 0 || n == 0) return;
  const bool fp8 = a.dtype == DType::f8e4m3;
  if (a.dtype != b.dtype || (c_dtype == DType::bf16 && (add || (a.dtype != DType::bf16 && !fp8))))
    fail("no matrix product of {} and {} into {}", dtype_name(a.dtype), dtype_name(b.dtype),
         dtype_name(c_dtype));
  if (fp8) check_fp8(n, k, a, b, c, c_stride, add);
  VFM_RUN(work_of(device, m, n, k, a, b, c_dtype, c_stride, add), gemm, m, n, k, a, b, c, c_dtype,
          c_stride, add);
}

void cpu::gemm(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
               void* c, DType c_dtype, std::int64_t c_stride, bool add) {
  if (a.dtype == DType::f8e4m3) return gemm_fp8(m, n, k, a, b, c, c_dtype, c_stride);
  if (k > 0 && has_gemm_tiles(a, b)) return gemm_tiles(m, n, k, a, b, c, c_dtype, c_stride, add);
  gemm_cpu(m, n, k, a, b, c, c_dtype, c_stride, add);
}

void set_gemm_cache(std::string path) {
  if constexpr (kHaveCuda) cuda::set_gemm_cache(std::move(path));
}

}  // namespace vfm::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm.h"

#include "base/error.h"
#include "ops/gemm_cpu.h"
#include "ops/gemm_cuda.h"
#include "tensor/device.h"

namespace vfm::ops {

void gemm(Device device, std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
          const Matrix& b, void* c, DType c_dtype, std::int64_t c_stride, bool add) {
  if (m == 0 || n == 0) return;
  if (a.dtype != b.dtype || (c_dtype == DType::bf16 && (add || a.dtype != DType::bf16)))
    fail("no matrix product of {} and {} into {}", dtype_name(a.dtype), dtype_name(b.dtype),
         dtype_name(c_dtype));
  if constexpr (kHaveCuda)
    if (device == Device::cuda) return gemm_cuda(m, n, k, a, b, c, c_dtype, c_stride, add);
  if (device != Device::cpu) fail("no matrix product on {}", device_name(device));
  gemm_cpu(m, n, k, a, b, c, c_dtype, c_stride, add);
}

void set_gemm_cache(std::string path) {
  if constexpr (kHaveCuda) set_gemm_cache_cuda(std::move(path));
}

}  // namespace vfm::ops

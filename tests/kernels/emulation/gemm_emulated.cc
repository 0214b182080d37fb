// Stands in for lib/ops/matmul/gemm_cuda.cc, as cuBLASLt needs a GPU: the CPU's product on the same
// memory.
// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/matmul_kernels.h"
#include "streams.h"
#include "tensor/device.h"

namespace vfm::ops {

void cuda::gemm(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
                void* c, DType c_dtype, std::int64_t c_stride, bool add) {
  check_gpu(
      emulation::submit(
          compute_stream(), [=] { cpu::gemm(m, n, k, a, b, c, c_dtype, c_stride, add); }, true),
      "multiply");
}
void cuda::set_gemm_cache(std::string) {}

}  // namespace vfm::ops

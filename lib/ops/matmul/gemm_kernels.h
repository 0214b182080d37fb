// The kernel behind gemm.h, which explains the arguments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "ops/matmul/gemm.h"

namespace vfm::ops {

VFM_KERNEL(void, gemm, std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
           const Matrix& b, void* c, DType c_dtype, std::int64_t c_stride, bool add)

/// Bytes of cuBLASLt's workspace on a GPU, shared by all products. Hopper's algorithms use 32 MiB
/// or more.
inline constexpr std::size_t kGemmWorkspace = std::size_t{64} << 20;

namespace cuda {
void set_gemm_cache(std::string path);
}

}  // namespace vfm::ops

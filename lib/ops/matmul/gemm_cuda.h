// Matrix products on the GPU, by cuBLASLt; gemm.h has the meaning of the arguments.
//
// The library is opened when it is first needed, so that programs start as fast, and on machines
// without it. For a new shape the algorithms that its heuristics propose are timed once, on scratch
// memory, and the fastest is kept; with set_deterministic (determinism.h) nothing is timed, and the
// heuristics' first is taken. f32 products are f32 throughout (no TF32); sums are f32.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matmul/gemm.h"

namespace vfm::ops {

void gemm_cuda(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
               void* c, DType c_dtype, std::int64_t c_stride, bool add);
void set_gemm_cache_cuda(std::string path);

}  // namespace vfm::ops

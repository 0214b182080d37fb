// Matrix products on the CPU without a library; gemm.h explains the arguments.
//
// Used in a build without oneDNN (the compute core alone, Meson's -Dtools=disabled), and as a
// reference for tests in every build. Operands are widened to f32 and summed in f32, so a bf16
// result is rounded once. The order of a sum depends on k only, so results do not depend on the
// number of threads. Thread-safety: any thread; uses threads inside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matmul/gemm.h"

namespace vfm::ops {

void gemm_plain(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
                void* c, DType c_dtype, std::int64_t c_stride, bool add);

}  // namespace vfm::ops

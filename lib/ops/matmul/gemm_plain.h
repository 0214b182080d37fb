// Matrix products on the CPU without a library; gemm.h has the meaning of the arguments.
//
// What a build without oneDNN computes with (the compute core alone, Meson's -Dtools=disabled), and
// in every build the second opinion of the tests. f32 sums, bf16 operands widened: a bf16 result is
// rounded once. Sums run in an order that depends on k only, so results do not depend on the number
// of threads. Thread-safety: any thread; uses threads inside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matmul/gemm.h"

namespace vfm::ops {

void gemm_plain(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
                void* c, DType c_dtype, std::int64_t c_stride, bool add);

}  // namespace vfm::ops

// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.h"
#include "kernels/ordered_sum.h"
#include "ops/pointwise/add_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops::cuda {

void add_into(DType y_type, void* y, DType x_type, const void* x, std::int64_t n) {
  check_gpu(kernels::add_into(kernel_type(y_type), y, kernel_type(x_type), x, n, compute_stream()),
            "run add");
}

void add_in_order(DType type, void* own, int place, const void* others, int parts, std::int64_t n) {
  check_gpu(kernels::ordered_sum(kernel_type(type), own, place, others, n, parts, own, n,
                                 compute_stream()),
            "run add in order");
}

void add_columns(const float* a, const float* b, float* sum, std::int64_t rows, std::int64_t narrow,
                 std::int64_t wide) {
  check_gpu(kernels::add_columns(a, b, sum, rows, narrow, wide, compute_stream()), "run add");
}

void add_columns_backward(const float* dsum, float* db, std::int64_t rows, std::int64_t narrow,
                          std::int64_t wide) {
  check_gpu(kernels::add_columns_backward(dsum, db, rows, narrow, wide, compute_stream()),
            "run add backward");
}

}  // namespace vfm::ops::cuda

// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.h"
#include "ops/matmul/low_rank_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops::cuda {

void add_scaled_columns(DType type, void* y, std::int64_t wide, const void* x, std::int64_t narrow,
                        std::int64_t rows, float scale) {
  check_gpu(kernels::add_scaled_columns(kernel_type(type), y, wide, x, narrow, rows, scale,
                                        compute_stream()),
            "run add of columns");
}

}  // namespace vfm::ops::cuda

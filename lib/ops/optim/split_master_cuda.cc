// SPDX-License-Identifier: Apache-2.0
#include "kernels/optimizer.h"
#include "ops/optim/split_master_kernels.h"
#include "tensor/device.h"

namespace vfm::ops::cuda {

void split_weights(const float* weights, std::uint16_t* high, std::uint16_t* low, std::int64_t n) {
  check_gpu(kernels::split_weights(weights, high, low, n, compute_stream()), "split weights");
}

void join_weights(const std::uint16_t* high, const std::uint16_t* low, float* weights,
                  std::int64_t n) {
  check_gpu(kernels::join_weights(high, low, weights, n, compute_stream()), "join weights");
}

}  // namespace vfm::ops::cuda

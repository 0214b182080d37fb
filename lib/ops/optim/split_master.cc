// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/split_master.h"

#include "base/error.h"
#include "ops/optim/optim_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

void check(const Tensor& weights, const Tensor& high, const Tensor& low) {
  const bool fits = weights.dtype() == DType::f32 && high.dtype() == DType::bf16 &&
                    low.dtype() == DType::i16 && weights.elements() == high.elements() &&
                    weights.elements() == low.elements() && weights.device() == high.device() &&
                    weights.device() == low.device();
  if (!fits)
    fail("a split master of {} {}: {} {}, {} {}", dtype_name(weights.dtype()),
         to_string(weights.shape()), dtype_name(high.dtype()), to_string(high.shape()),
         dtype_name(low.dtype()), to_string(low.shape()));
}

}  // namespace

void split_master(const Tensor& weights, const Tensor& high, const Tensor& low) {
  check(weights, high, low);
  VFM_RUN(Touching(weights, high, low), split_weights, weights.data<float>(),
          high.data<std::uint16_t>(), low.data<std::uint16_t>(), weights.elements());
}

void join_master(const Tensor& high, const Tensor& low, const Tensor& weights) {
  check(weights, high, low);
  VFM_RUN(Touching(weights, high, low), join_weights, high.data<std::uint16_t>(),
          low.data<std::uint16_t>(), weights.data<float>(), weights.elements());
}

}  // namespace vfm::ops

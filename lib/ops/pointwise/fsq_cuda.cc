// SPDX-License-Identifier: Apache-2.0
#include "kernels/reconstruction.h"
#include "ops/pointwise/fsq_kernels.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

static_assert(kernels::kMostLevels == kMostFsqLevels);

// With `gradient`, that of the values, the gradient of z.
void run(const Tensor& z, const FsqLevels& levels, const Tensor& gradient, const Tensor& out) {
  kernels::Fsq call;
  call.levels.dimensions = static_cast<int>(levels.dimensions);
  for (std::size_t d = 0; d < levels.dimensions; ++d) {
    call.levels.half[d] = levels.half[d];
    call.levels.offset[d] = levels.offset[d];
    call.levels.shift[d] = levels.shift[d];
    call.levels.middle[d] = levels.middle[d];
    call.levels.lowest[d] = levels.lowest[d];
    call.levels.highest[d] = levels.highest[d];
  }
  call.count = z.elements();
  call.z = z.data<float>();
  if (gradient.defined()) call.gradient = gradient.data<float>();
  call.out = out.data<float>();
  check_gpu(kernels::fsq(call, compute_stream()), "quantise to levels");
}

}  // namespace

void cuda::fsq_forward(const Tensor& z, const FsqLevels& levels, const Tensor& values) {
  run(z, levels, {}, values);
}

void cuda::fsq_backward(const Tensor& z, const FsqLevels& levels, const Tensor& dvalues,
                        const Tensor& dz) {
  run(z, levels, dvalues, dz);
}

}  // namespace vfm::ops

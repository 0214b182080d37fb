// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/matmul_kernels.h"
#include "ops/norm/modulate_fp8_kernels.h"

namespace vfm::ops {

// The two steps, one after the other.
void cpu::modulate_fp8(const ModulateArgs& args, const Quantized& normed) {
  const Tensor between(normed.values.shape(), args.type);
  ModulateArgs both = args;
  both.normed = between.raw();
  modulate_forward(both);
  quantize(between, normed);
}

}  // namespace vfm::ops

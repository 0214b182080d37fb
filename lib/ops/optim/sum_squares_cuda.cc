// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/optim/optimizer_lists_cuda.h"
#include "ops/optim/sum_squares_kernels.h"

namespace vfm::ops {

double cuda::sum_squares(std::span<const Extent> arrays) {
  std::vector<kernels::OptimizerSlot> list;
  for (const Extent& array : arrays) {
    kernels::OptimizerSlot slot;
    slot.gradient = array.data;
    slot.count = array.count;
    list.push_back(slot);
  }
  return read_double(sum_gradients(lists_of(list)));
}

}  // namespace vfm::ops

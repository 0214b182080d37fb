// What it costs to use a part of a model.
//
// A multiply-add is two operations. Counted are convolutions, products with matrices and attention;
// not norms, activations and wavelets, which take the memory's time and not that of arithmetic.
// Memory is that of the tensors that are alive at once, where they are most; what libraries need
// for themselves is not in it, but for cuBLASLt's workspace on a GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tensor/meta.h"

namespace vfm::models {

struct PartCost {
  std::int64_t parameters = 0;
  double flops = 0;
  KernelCalls calls;            ///< of as much work as flops
  double weight_bytes = 0;      ///< of its weights as tensors; 0: they stay mapped
  double activation_bytes = 0;  ///< of tensors, without the weights
  double held_bytes = 0;        ///< the same with what the allocator keeps; 0: not known
  double host_bytes = 0;        ///< of the host besides

  /// Of a part that has been run, beside `weights` bytes.
  void take(const MetaAccount& account, std::size_t weights) {
    const MemoryStats memory = account.memory();
    flops = account.work().flops;
    calls = account.calls();
    weight_bytes = static_cast<double>(weights);
    activation_bytes = static_cast<double>(memory.peak - weights);
    held_bytes = static_cast<double>(memory.held - weights);
  }
  /// It is done so often.
  void repeat(double times) {
    flops *= times;
    for (auto& [call, count] : calls)
      count *= times;
  }
};

}  // namespace vfm::models

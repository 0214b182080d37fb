// The cost of running a part of a model.
//
// A multiply-add is two operations. Convolutions, matrix products and attention are counted. Norms,
// activations and wavelets are not: they are limited by memory, not by arithmetic. Memory is the
// largest sum of the tensors that are alive at once. Memory of libraries is not counted, except
// cuBLASLt's workspace on a GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tensor/meta.h"

namespace vfm::models {

struct PartCost {
  std::int64_t parameters = 0;
  double flops = 0;
  KernelCalls calls;            ///< kernel calls of the same work
  double weight_bytes = 0;      ///< of the weights as tensors; 0: weights stay mapped files
  double activation_bytes = 0;  ///< of tensors, without the weights
  double held_bytes = 0;        ///< the same with memory that the allocator keeps; 0: unknown
  double host_bytes = 0;        ///< of host memory in addition

  /// Sets the costs from the account of a part that has run. `weights`: bytes of the part's
  /// weights.
  void take(const MetaAccount& account, std::size_t weights) {
    const MemoryStats memory = account.memory();
    flops = account.work().flops;
    calls = account.calls();
    weight_bytes = static_cast<double>(weights);
    activation_bytes = static_cast<double>(memory.peak - weights);
    held_bytes = static_cast<double>(memory.held - weights);
  }
  /// Adds the work of `times` runs of another part. Memory stays as it is.
  void add_work(const PartCost& more, double times = 1) {
    flops += times * more.flops;
    add_calls(calls, more.calls, times);
  }
  /// Multiplies the work, as if the part ran `times` times.
  void repeat(double times) {
    flops *= times;
    for (auto& [call, count] : calls)
      count *= times;
  }
};

}  // namespace vfm::models

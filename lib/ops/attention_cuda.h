// The CUDA versions of the kernels of attention_cpu.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/attention.h"
#include "ops/attention_cpu.h"

namespace vfm::ops {

/// Throws Error for a head dimension that no kernel takes (above 256).
std::shared_ptr<const AttentionDeviceWork> attention_work_cuda(const AttentionPack& pack);
/// Of `args` the lists of work and the scratch are not used. `queries` is S.
void attention_forward_cuda(const AttentionArgs& args, const AttentionDeviceWork& work,
                            std::int64_t queries);
void attention_backward_cuda(const AttentionArgs& args, const AttentionDeviceWork& work,
                             std::int64_t queries);

/// attention_fp8.h's. `keys` is L. Of `args` the log-sum-exp is not used either.
void attention_fp8_forward_cuda(const AttentionArgs& args, const AttentionDeviceWork& work,
                                std::int64_t queries, std::int64_t keys);

}  // namespace vfm::ops

// The kernel behind attention_fp8.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/attention_kernels.h"

namespace vfm::ops {

/// On the CPU plain loops over the rounded numbers: the oracle of the GPU's, and slow. Of `args`
/// the lists of work and the scratch are not used; log_sum_exp may be null.
VFM_KERNEL(void, attention_fp8_forward, const AttentionArgs& args, const AttentionPack& pack)

}  // namespace vfm::ops

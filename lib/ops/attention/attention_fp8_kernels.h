// The kernel behind attention_fp8.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/attention_kernels.h"

namespace vfm::ops {

/// The CPU has plain loops over the rounded numbers, slow, as a reference for the GPU. The work
/// items and the scratch of `args` are not used; log_sum_exp may be null.
VFM_KERNEL(void, attention_fp8_forward, const AttentionArgs& args, const AttentionPack& pack)

}  // namespace vfm::ops

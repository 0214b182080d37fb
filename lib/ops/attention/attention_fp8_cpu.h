// The CPU version behind attention_fp8.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/attention_cpu.h"

namespace vfm::ops {

/// Plain loops over the rounded numbers: the oracle of the GPU's, and slow. Of `args` the lists of
/// work, the log-sum-exp and the scratch are not used.
void attention_fp8_forward_cpu(const AttentionArgs& args);

}  // namespace vfm::ops

// Whether this process must give the same bits at every run.
//
// The CPU always does. On a GPU three things would not: backward of attention by cuDNN, which adds
// up gradients in any order, its convolutions, whose kernels may, and choosing among cuBLASLt's
// algorithms by timing them. With the switch on none is used: slower, and the same bits on the same
// GPU with the same libraries.
// Thread-safety: set it before the first op, from one thread; reading is safe from any.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::ops {

/// Off at the start.
void set_deterministic(bool on);
bool deterministic();

}  // namespace vfm::ops

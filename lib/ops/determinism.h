// The switch for bitwise reproducible results.
//
// The CPU always gives the same bits. A GPU may not, for three reasons: cuDNN's backward pass of
// attention adds up gradients in any order, cuDNN's convolutions may do so too, and the fastest
// algorithm of cuBLASLt is chosen by timing. With the switch on, none of the three is used. Runs
// are slower and give the same bits on the same GPU with the same libraries.
// Thread-safety: set it before the first op, from one thread; any thread may read it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::ops {

/// Off at the start of the process.
void set_deterministic(bool on);
bool deterministic();

}  // namespace vfm::ops

// What ptx/mma.cuh is made of in the emulation. A kernel's headers call it with
// the place in the kernel; this is compiled as fast code that nobody watches.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vfm::emulation {

/// Bytes from the beginning of the block's shared memory.
using SharedAddress = std::uint32_t;

struct Words {
  unsigned w[4];
};
struct Sums {
  float v[4];
};

SharedAddress shared_address(const void* pointer);
Words load_matrices(SharedAddress row);
Words load_transposed(SharedAddress row);
Sums multiply_add(Sums c, Words a, unsigned b0, unsigned b1);

/// A copy happens when it is waited for, so that a kernel that reads too early finds old bytes.
void copy_begins(SharedAddress to, const void* from, bool valid, unsigned bytes);
void copy_commit();
void copy_wait(int left);

}  // namespace vfm::emulation

// Normally distributed numbers from a Philox stream, many at a time, for Random::fill_normal.
//
// The method is Box-Muller in f32, with polynomials. Every instruction set gives the same bits. An
// element does not depend on the other elements of a call. The results differ from exact Box-Muller
// by at most 4 units in the last place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vfm {

/// Number of cipher blocks that one call computes. Each block gives four normals.
inline constexpr int kNormalBlocks = 32;

/// Sets out[4 b + i] to normal i of block `first` + b, for kNormalBlocks blocks. `key` and `stream`
/// are Random::cipher_key() and stream().
using NormalBlocks = void(std::uint64_t first, const std::uint32_t key[2],
                          const std::uint32_t stream[2], float* out);

/// The functions of normals_cpu.cc for x86-64-v2, v3 and v4.
namespace base {
NormalBlocks normal_blocks;
}
namespace avx2 {
NormalBlocks normal_blocks;
}
namespace avx512 {
NormalBlocks normal_blocks;
}

/// Returns the function for the widest instruction set of this machine.
NormalBlocks* best_normal_blocks() noexcept;

}  // namespace vfm

// Normal numbers from the words of a Philox stream, many at a time, for Random::fill_normal.
//
// Box-Muller in f32, by polynomials, with additions, products, quotients and roots only: these are
// rounded correctly everywhere, and normals_cpu.cc is compiled without fused ones. So every
// instruction set gives the same bits, and an element does not depend on the others drawn with it.
// The results are within 4 units in the last place of Box-Muller in exact arithmetic, tails
// included.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vfm {

/// How many blocks of the cipher are computed at once; each gives four normals.
inline constexpr int kNormalBlocks = 32;

/// out[4 b + i]: normal i of block `first` + b, for kNormalBlocks blocks. `key` and `stream` as
/// Random::cipher_key() and stream().
using NormalBlocks = void(std::uint64_t first, const std::uint32_t key[2],
                          const std::uint32_t stream[2], float* out);

/// normals_cpu.cc, compiled once for each of these instruction sets; x86-64-v2, v3, v4.
namespace base {
NormalBlocks normal_blocks;
}
namespace avx2 {
NormalBlocks normal_blocks;
}
namespace avx512 {
NormalBlocks normal_blocks;
}

/// The fastest that this machine has.
NormalBlocks* best_normal_blocks() noexcept;

}  // namespace vfm

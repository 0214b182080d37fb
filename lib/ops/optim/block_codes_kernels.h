// The kernels behind block_codes.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"
#include "ops/optim/block_codes.h"

namespace vfm::ops {

// The blocks [first, end) are those that may have elements of the part. `numbers_of` has the
// numbers of the codes; `limits` the 255 numbers between neighbours of them.
struct BlocksOfPart {
  PartOfWhole part;
  std::int64_t first = 0, end = 0;
};

VFM_ISA_KERNEL(void, decode_blocks, const std::uint8_t* codes, const float* scales,
               const float* numbers_of, const BlocksOfPart& blocks, float* numbers)
VFM_ISA_KERNEL(void, scales_of_blocks, const float* numbers, const BlocksOfPart& blocks,
               float* scales)
VFM_ISA_KERNEL(void, encode_blocks, const float* numbers, const float* scales, const float* limits,
               const BlocksOfPart& blocks, std::uint8_t* codes)
VFM_ISA_KERNEL(void, greater_in_place, float* target, const float* other, std::int64_t n)

}  // namespace vfm::ops

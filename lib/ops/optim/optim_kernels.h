// The kernels of optimizers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"
#include "ops/optim/adamw.h"
#include "ops/optim/block_codes.h"
#include "ops/optim/sums.h"

namespace vfm::ops {

// The kernels behind adamw.h.

VFM_KERNEL(void, adamw, std::span<const AdamwSlot> slots, const AdamwStep& step)
VFM_KERNEL(double, clipped_adamw, std::span<const AdamwSlot> slots, const AdamwStep& step,
           double factor, double most)

// Updates one chunk of a parameter on the calling thread.
VFM_CPU_KERNEL(void, adamw_chunk, const AdamwSlot& slot, const AdamwStep& step, float correction1,
               float correction2, std::int64_t begin, std::int64_t end)

// The kernels behind block_codes.h.

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

// The kernels behind split_master.h.

VFM_ISA_KERNEL(void, split_weights, const float* weights, std::uint16_t* high, std::uint16_t* low,
               std::int64_t n)
VFM_ISA_KERNEL(void, join_weights, const std::uint16_t* high, const std::uint16_t* low,
               float* weights, std::int64_t n)

// The kernels behind sums.h.

/// An array of floats with its type.
struct TypedArray {
  DType type = DType::f32;
  void* at = nullptr;
};

// out = a x + b y, n elements
VFM_ISA_KERNEL(void, scaled_sum, const TypedArray& out, float a, const TypedArray& x, float b,
               const TypedArray& y, std::int64_t n)

VFM_KERNEL(double, sum_squares, std::span<const Extent> arrays)

// Sums one chunk on the calling thread.
VFM_CPU_KERNEL(double, sum_squares_chunk, const float* x, std::int64_t n)

}  // namespace vfm::ops

// Numbers in 8 bits, with a scale for each block of 256: state of an optimizer that takes a quarter
// of f32's memory.
//
// A code stands for a number in [-1, 1], or in [0, 1], times the block's scale, which is the
// largest magnitude in the block. The numbers of codes are dense near zero: seven decades, with
// twice as many in a decade as in the smaller one. A block is of the whole tensor in C order,
// wherever its elements are: ranks that have parts of it agree on its scale, so that codes do not
// depend on the layout.
// Source: Dettmers et al., "8-bit optimizers via block-wise quantization" (2022), section 2 and
// appendix; the codes are those of create_dynamic_map() in bitsandbytes, and so is the size of
// blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "tensor/tensor.h"

namespace vfm::ops {

inline constexpr std::int64_t kCodeBlock = 256;
/// The number of blocks of a tensor with this number of elements.
constexpr std::int64_t code_blocks(std::int64_t elements) {
  return (elements + kCodeBlock - 1) / kCodeBlock;
}

enum class CodeRange { signed_unit, unit };  ///< [-1, 1] or [0, 1]
/// The numbers of codes 0 to 255, ascending.
const std::array<float, 256>& numbers_of_codes(CodeRange range);

/// The places of `count` elements of a part in a whole tensor of `whole` elements. The part is runs
/// of `length` elements each; run r begins at `first` + r * `stride` of the whole. The elements are
/// those from number `begin` of the part on.
struct PartOfWhole {
  std::int64_t count = 0, begin = 0;
  std::int64_t length = 0, stride = 0, first = 0;
  std::int64_t whole = 0;
};

// Codes are u8, numbers and scales finite f32. Codes and numbers have part.count elements, scales
// code_blocks(part.whole). Scales of blocks without an element of the part are neither read nor
// written. All tensors are on one device. Others throw Error. Not recorded.

/// numbers = number of the code * scale of the block
void decode_blocks(const Tensor& codes, const Tensor& scales, CodeRange range,
                   const PartOfWhole& part, const Tensor& numbers);
/// scales = the largest |number| of the elements of the part
void scales_of_blocks(const Tensor& numbers, const PartOfWhole& part, const Tensor& scales);
/// codes = the nearest to number / scale, of two equally near ones the lower; the nearest to zero
/// if the scale is zero. Each |number| is at most its scale.
void encode_blocks(const Tensor& numbers, const Tensor& scales, CodeRange range,
                   const PartOfWhole& part, const Tensor& codes);

/// target = max(target, other), f32 of one size.
void greater_in_place(const Tensor& target, const Tensor& other);

}  // namespace vfm::ops

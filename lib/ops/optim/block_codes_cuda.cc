// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/block_codes.h"
#include "ops/optim/block_codes_kernels.h"
#include "tensor/device.h"

namespace vfm::ops::cuda {
namespace {

kernels::CodedPart coded_part(const BlocksOfPart& blocks) {
  const PartOfWhole& part = blocks.part;
  return {part.count, part.begin, part.length, part.stride, part.first, blocks.first, blocks.end};
}

kernels::CodeTable table_of(const float* numbers, int count) {
  kernels::CodeTable table{};
  std::copy_n(numbers, count, table.v);
  return table;
}

}  // namespace

void decode_blocks(const std::uint8_t* codes, const float* scales, const float* numbers_of,
                   const BlocksOfPart& blocks, float* numbers) {
  check_gpu(kernels::decode_blocks(codes, scales, table_of(numbers_of, 256), coded_part(blocks),
                                   numbers, compute_stream()),
            "decode blocks");
}

void scales_of_blocks(const float* numbers, const BlocksOfPart& blocks, float* scales) {
  check_gpu(kernels::scales_of_blocks(numbers, coded_part(blocks), scales, compute_stream()),
            "find the scales of blocks");
}

void encode_blocks(const float* numbers, const float* scales, const float* limits,
                   const BlocksOfPart& blocks, std::uint8_t* codes) {
  check_gpu(kernels::encode_blocks(numbers, scales, table_of(limits, 255), coded_part(blocks),
                                   codes, compute_stream()),
            "encode blocks");
}

void greater_in_place(float* target, const float* other, std::int64_t n) {
  check_gpu(kernels::greater_in_place(target, other, n, compute_stream()),
            "run the greater of two");
}

}  // namespace vfm::ops::cuda

// Numbers in 8 bits with a scale for each block of 256 elements of a whole tensor: the CUDA version
// of lib/ops/optim/block_codes.h, which has the codes and their source.
//
// A warp takes a block of the whole tensor, and of its elements those that the part has. So a scale
// is found by one warp, without atomics, and the bits are the CPU's.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

inline constexpr int kCodedBlock = 256;

/// Elements [begin, begin + count) of a part, which is runs of `length` elements; run r begins at
/// element `first` + r * `stride` of the whole tensor. Only blocks in [first_block,
/// end_block) may have such elements.
struct CodedPart {
  std::int64_t count = 0, begin = 0;
  std::int64_t length = 1, stride = 1, first = 0;
  std::int64_t first_block = 0, end_block = 0;
};

/// The numbers of codes, or the 255 limits between them, ascending.
struct CodeTable {
  float v[256];
};

// Each returns a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for more
// blocks than a grid can have. Pointers need only the alignment of an element.

/// numbers = the code's number * the block's scale
int decode_blocks(const std::uint8_t* codes, const float* scales, const CodeTable& numbers_of,
                  const CodedPart& part, float* numbers, CUstream_st* stream);
/// scales = the largest |number|; scales of blocks without elements of the part stay.
int scales_of_blocks(const float* numbers, const CodedPart& part, float* scales,
                     CUstream_st* stream);
/// codes = how many limits are below number / scale; of 0 if the scale is 0
int encode_blocks(const float* numbers, const float* scales, const CodeTable& limits,
                  const CodedPart& part, std::uint8_t* codes, CUstream_st* stream);

/// target = max(target, other)
int greater_in_place(float* target, const float* other, std::int64_t n, CUstream_st* stream);

}  // namespace vfm::kernels

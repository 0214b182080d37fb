// The sum of what several ranks have of the same elements, in the order of the ranks: the CUDA
// version of lib/dist/ordered_sum.h, to the bit.
//
//   sum[i] = ((x_0[i] + x_1[i]) + x_2[i]) + ...
//
// f32 in f32, bf16 in f32 with one rounding at the end, to the nearest, ties to even. Pointers need
// no more than the alignment of an element; where all parts begin at multiples of 16 bytes they are
// read 16 bytes at a time, with the same results. Return a cudaError_t: 0, or what is wrong with
// the launch; 1 (invalid value) for a negative size or one beyond 2^38.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// x_place is `own`, the others lie in `others` in their order, each begins `stride` elements after
/// the one before; `parts` of n elements with it. `sum` may be `own`, and overlaps none otherwise.
int ordered_sum(Type type, const void* own, int place, const void* others, std::int64_t stride,
                int parts, void* sum, std::int64_t n, CUstream_st* stream);

}  // namespace vfm::kernels

// Adds up the tensors of several ranks in the order of the ranks: the CUDA version of
// lib/dist/ordered_sum.h, with the same bits.
//
//   sum[i] = ((x_0[i] + x_1[i]) + x_2[i]) + ...
//
// f32 and bf16 are added in f32; bf16 is rounded once at the end, to nearest, ties to even.
// Pointers need only the alignment of an element. If all parts begin at multiples of 16 bytes, they
// are read 16 bytes at a time, with the same results. Returns a cudaError_t: 0 on success, the
// launch's error, or 1 (invalid value) for a size that is negative or above 2^38.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// x_place is `own`. The others lie in `others` in their order, `stride` elements apart. There are
/// `parts` terms of n elements, including `own`. `sum` may be `own`; otherwise it must not overlap
/// a term.
int ordered_sum(Type type, const void* own, int place, const void* others, std::int64_t stride,
                int parts, void* sum, std::int64_t n, CUstream_st* stream);

}  // namespace vfm::kernels

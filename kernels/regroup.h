// Pixels of patches to channels by means, and channels to pixels by repetition: the CUDA version of
// lib/ops/conv/resample.h, which has the order of the values of a patch.
//
// Computed in f32; x and y have `type`. Pointers need only the alignment of an element. All
// functions return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for
// negative sizes, channels that do not divide, a frame outside the patch, or too many elements.
// Sizes of zero succeed.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

struct Regroup {
  Type type = Type::f32;
  std::int64_t rows = 0, columns = 0;  ///< of the coarse picture
  std::int64_t fine_channels = 0, coarse_channels = 0;
  int space = 1, frames = 1, frame = 0;  ///< of a patch, and which of its frames
  bool add = false;                      ///< pool_patches: to what is in y
  const void* x = nullptr;
  void* y = nullptr;
};

/// y [rows, columns, coarse_channels] from x [rows space, columns space, fine_channels].
int pool_patches(const Regroup& call, CUstream_st* stream);
/// y [rows space, columns space, fine_channels] from x [rows, columns, coarse_channels].
int repeat_patches(const Regroup& call, CUstream_st* stream);

}  // namespace vfm::kernels

// Root-mean-square norm of pixels over their channels, perhaps followed by SiLU: the CUDA version
// of lib/ops/norm/pixel_norm.h, which has the formula.
//
// Computed in f32; x and y have `type`. SiLU is exact to a few units in the last place. Pointers
// need only the alignment of an element. Fast if pixels are multiples of 16 bytes, aligned to 16
// bytes; other cases give correct results. An x whose squares overflow f32 gives zeros; NaN makes
// its pixel NaN. Returns a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for
// negative sizes, more than 2^31 - 1 channels or too many pixels. Sizes of zero succeed.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

struct PixelNorm {
  std::int64_t pixels = 0, channels = 0;
  Type type = Type::f32;
  bool silu = false;
  const void* x = nullptr;        ///< [pixels, channels]
  const float* weight = nullptr;  ///< [channels]
  void* y = nullptr;              ///< [pixels, channels], may be x
};
int pixel_norm(const PixelNorm& call, CUstream_st* stream);

}  // namespace vfm::kernels

// Modulate whose result is E4M3 with one scale, in the numbers of modulate (modulate.h) and then
// quantize (quantize.h), to the bit: the CUDA version of modulate_fp8 in lib/ops/norm/modulate.h.
//
// The scale depends on all tokens, so there are two passes: the first writes the stream and keeps
// the largest magnitude of each token, the second computes the rows again from the stream and
// writes them as E4M3. What is between norm and product is in no memory, in no type. Each element
// of the stream is read once more, which costs as much as its bf16 would, written and read; what is
// saved is reading it again for the largest.
// Between them a small launch takes the largest of the tokens' in parts.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "modulate.h"
#include "quantize.h"

namespace vfm::kernels {

struct ModulateFp8 {
  /// As for modulate_forward(), but `normed` is not looked at: elements are rounded to `type`, and
  /// then to E4M3. Moments are an output too.
  ModulateForward forward;
  std::uint8_t* values = nullptr;    ///< [S, D] out, aligned to 4 bytes
  float* scale = nullptr;            ///< one, out
  std::uint32_t* maxima = nullptr;   ///< [S] scratch, aligned to 16 bytes: the largest of a token
  std::uint32_t* largest = nullptr;  ///< [kQuantizeParts] scratch
};

/// Returns a cudaError_t as modulate_forward() does, and 801 (not supported) on a GPU below compute
/// capability 9.0. Without tokens it writes a scale and no value.
int modulate_fp8(const ModulateFp8& call, CUstream_st* stream);

}  // namespace vfm::kernels

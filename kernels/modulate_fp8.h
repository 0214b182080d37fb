// Modulate with a result in E4M3 and one scale: modulate (modulate.h) and then quantize
// (quantize.h), bit for bit. The CUDA version of modulate_fp8 in lib/ops/norm/modulate.h.
//
// The scale depends on all tokens, so there are two passes. The first writes the stream and keeps
// the largest magnitude of each token. A small launch in between takes the largest of them in
// parts. The second pass recomputes the rows from the stream and writes them as E4M3. The normed
// values themselves are never stored. Reading the stream a second time costs as much as writing and
// reading them in bf16; a further read for the largest value is saved.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "modulate.h"
#include "quantize.h"

namespace vfm::kernels {

struct ModulateFp8 {
  /// As for modulate_forward(), but `normed` is ignored: elements are rounded to `type` and then to
  /// E4M3. Moments are written too.
  ModulateForward forward;
  std::uint8_t* values = nullptr;    ///< [S, D] output, aligned to 4 bytes
  float* scale = nullptr;            ///< one float, output
  std::uint32_t* maxima = nullptr;   ///< [S] scratch, aligned to 16: token's largest
  std::uint32_t* largest = nullptr;  ///< [kQuantizeParts] scratch
};

/// Returns a cudaError_t like modulate_forward(), and 801 (not supported) on a GPU below compute
/// capability 9.0. Without tokens it writes only a scale.
int modulate_fp8(const ModulateFp8& call, CUstream_st* stream);

}  // namespace vfm::kernels

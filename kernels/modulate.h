// Gated residual, layer norm and modulation in one kernel, with a map from tokens to rows: the CUDA
// version of lib/ops/norm/modulate.h, which has the formula and explains the rows.
//
// Every element of the stream is read once and written once; the row stays in registers in between.
// Source of the fusion: NeMo's scaled_modulated_layernorm, which joins the same three steps.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Device pointers of one call; S tokens, D width, R modulation rows. Rows are D elements apart
/// unless there is a stride; strides count floats. Every pointer is aligned to 16 bytes; D and the
/// strides are multiples of 4.
struct ModulateForward {
  std::int64_t tokens = 0;
  int width = 0;
  Type type = Type::f32;  ///< of branch and normed
  float epsilon = 1e-6f;
  bool centred = true;           ///< true: layer norm; false: RMS norm, with a mean of 0
  const float* x = nullptr;      ///< [S, D]
  const void* branch = nullptr;  ///< [S, D]; null if nothing is gated
  const float* gate = nullptr;   ///< [R, D]
  std::int64_t gate_stride = 0;
  const float* extra = nullptr;       ///< [S, D]; null if there is none
  const float* modulation = nullptr;  ///< [R, 2 D]: shift, then scale; required with normed
  std::int64_t modulation_stride = 0;
  const std::int32_t* rows = nullptr;  ///< [S], each below R
  float* stream = nullptr;             ///< [S, D] output; may be x; null if nothing is added to x
  void* normed = nullptr;              ///< [S, D] output; null if only the stream is wanted
  float* moments = nullptr;            ///< [S, 2] output: mean, 1 / deviation; with normed
};

/// Returns a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for a width that
/// is not a multiple of 4.
int modulate_forward(const ModulateForward& call, CUstream_st* stream);

}  // namespace vfm::kernels

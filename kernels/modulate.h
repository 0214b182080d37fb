// Gated residual, layer norm and modulation in one kernel, with a token -> row map: the CUDA
// version of lib/ops/norm/modulate.h, where the formula and the meaning of the rows are.
//
// Every element of the stream is read once and written once; the row stays in registers in between.
// Source of the fusion: NeMo's scaled_modulated_layernorm, which joins the same three steps.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Device pointers of one call; S tokens, D width, R modulation rows. Rows are D elements apart
/// unless a stride says otherwise; strides count floats. Every pointer is aligned to 16 bytes, D
/// and the strides are multiples of 4.
struct ModulateForward {
  std::int64_t tokens = 0;
  int width = 0;
  Type type = Type::f32;  ///< of branch and normed
  float epsilon = 1e-6f;
  bool centred = true;           ///< a layer norm; false: an RMS norm, whose mean counts as 0
  const float* x = nullptr;      ///< [S, D]
  const void* branch = nullptr;  ///< [S, D], or null: nothing is gated
  const float* gate = nullptr;   ///< [R, D]
  std::int64_t gate_stride = 0;
  const float* extra = nullptr;       ///< [S, D], or null
  const float* modulation = nullptr;  ///< [R, 2 D]: shift, then scale; goes with normed
  std::int64_t modulation_stride = 0;
  const std::int32_t* rows = nullptr;  ///< [S], each below R
  float* stream = nullptr;             ///< [S, D] out; may be x, or null: nothing is added to x
  void* normed = nullptr;              ///< [S, D] out, or null: the stream is all that is wanted
  float* moments = nullptr;            ///< [S, 2] out: mean and 1 / deviation; goes with normed
};

/// Returns a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for a width that
/// is not a multiple of 4.
int modulate_forward(const ModulateForward& call, CUstream_st* stream);

}  // namespace vfm::kernels

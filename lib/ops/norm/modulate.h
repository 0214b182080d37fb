// The fused heart of an AdaLN transformer: gated residual, layer norm and modulation in one pass.
//
//   stream = x + gate[row] * branch + extra
//   normed = (stream - mean) / sqrt(var + eps) * (1 + scale[row]) + shift[row]
//
// or, not centred, with an RMS norm: mean 0 and the mean of the squares as var;
// where row = rows[token] is the modulation row of the token: its sample in a pack, or its frame.
// So packs, per-frame conditioning and the plain batch are one kernel.
// Source of the formula: Peebles and Xie, "Scalable diffusion models with transformers" (2023).
// Shape letters: S tokens, D width, R modulation rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/matmul/quantize.h"
#include "ops/norm/row_map.h"
#include "ops/tape.h"

namespace vfm::ops {

struct ModulateInput {
  Tensor x;       ///< [S, D] f32: the residual stream
  Tensor branch;  ///< [S, D] of dtype `out`, or undefined: nothing is added
  Tensor gate;    ///< [R, >= gate_column + D] f32; goes with branch
  std::int64_t gate_column = 0;
  Tensor extra;       ///< [S, D] f32, or undefined
  Tensor modulation;  ///< [R, >= 2 D] f32: shift in columns 0..D-1, scale in D..2D-1; of a norm
  RowMap rows;        ///< of S tokens, each below R, on x's device
  float epsilon = 1e-6f;
  bool centred = true;     ///< a layer norm; false: an RMS norm
  DType out = DType::f32;  ///< f32 or bf16: of branch and normed
};

struct Modulated {
  Tensor stream;  ///< [S, D] f32; x itself if nothing is added
  Tensor normed;  ///< [S, D]
};

/// Deterministic: sums over tokens are taken in fixed chunks, in a fixed order.
Modulated gated_residual_layernorm_modulate(Tape& tape, const ModulateInput& input);

struct ModulatedFp8 {
  Tensor stream;     ///< as above
  Quantized normed;  ///< [S, D]
};

/// The same for products in FP8: `normed` as quantize() makes it, to the bit. On the GPU it is in
/// no memory before that: one pass finds its largest value, the next one computes it again from the
/// stream. For inference: throws Error for a tape that records, and on a GPU without FP8.
ModulatedFp8 gated_residual_layernorm_modulate_fp8(const Tape& tape, const ModulateInput& input);

/// The stream alone, of an input with a branch: no norm, and `modulation` is not read.
Tensor gated_residual(Tape& tape, const ModulateInput& input);

}  // namespace vfm::ops

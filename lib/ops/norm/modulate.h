// Gated residual, layer norm and modulation of an AdaLN transformer, fused into one pass.
//
//   stream = x + gate[row] * branch + extra
//   normed = (stream - mean) / sqrt(var + eps) * (1 + scale[row]) + shift[row]
//
// If not centred, this is an RMS norm: mean is 0 and var is the mean of the squares.
// row = rows[token] is the modulation row of the token, such as its sample in a pack or its frame.
// One kernel therefore serves packs, per-frame conditioning and plain batches.
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
  Tensor branch;  ///< [S, D] of dtype `out`; undefined if nothing is added
  Tensor gate;    ///< [R, >= gate_column + D] f32; required with branch
  std::int64_t gate_column = 0;
  Tensor extra;       ///< [S, D] f32, or undefined
  Tensor modulation;  ///< [R, >= 2 D] f32: D columns of shift from `modulation_column` on, then
                      ///< D of scale
  std::int64_t modulation_column = 0;
  RowMap rows;        ///< the rows of S tokens, each below R, on x's device
  float epsilon = 1e-6f;
  bool centred = true;     ///< true: layer norm; false: RMS norm
  DType out = DType::f32;  ///< f32 or bf16: of branch and normed
};

struct Modulated {
  Tensor stream;  ///< [S, D] f32; x itself if nothing is added
  Tensor normed;  ///< [S, D]
};

/// Deterministic: sums over tokens are computed in fixed chunks, in a fixed order.
Modulated gated_residual_layernorm_modulate(Tape& tape, const ModulateInput& input);

struct ModulatedFp8 {
  Tensor stream;     ///< [S, D] f32; x itself if nothing is added
  Quantized normed;  ///< [S, D]
};

/// The same for products in FP8: `normed` equals quantize() of it, bit for bit. The GPU never
/// stores `normed` unquantised: one pass finds the largest value, the next recomputes `normed` from
/// the stream. For inference: throws Error for a tape that records, and on a GPU without FP8.
ModulatedFp8 gated_residual_layernorm_modulate_fp8(const Tape& tape, const ModulateInput& input);

/// Returns only the stream, for an input with a branch. Does not compute a norm or read
/// `modulation`.
Tensor gated_residual(Tape& tape, const ModulateInput& input);

}  // namespace vfm::ops

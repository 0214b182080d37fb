// Learned absolute positions, forward and backward, and the sinusoid of the time input: the CUDA
// versions of learned_positions, for a step of 1, and of sinusoid in lib/ops/position/positions.h,
// which has the formulas.
//
//   e = t[frame] + h[row] + w[column],   y = e / n,   n = 1e-6 + rms(e)
//   de = (dy - y mean(dy y) n / rms(e)) / n, with n a constant where e = 0
//
// The gradient of a row of a table is the sum of de over the tokens that used it. One block
// computes it: it finds the tokens from the grids and adds them in an order that depends only on
// the grids. This needs no index and no atomics, and the bits are the same on every GPU.
// Source of the formula: NVIDIA, "Cosmos World Foundation Model Platform" (2025).
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// The arguments of both directions; S tokens, D width, R samples. Samples are in order, and the
/// tokens of a sample run frame by frame, then row by row: S is the sum of frames * height * width.
/// All sizes may be 0. Fast if D is a multiple of 4 and the arrays are aligned to 16 bytes; other
/// cases give correct results.
struct Positions {
  std::int64_t tokens = 0;  ///< below 2^31
  int width = 0;
  bool unit = true;  ///< false: y = e, n = 1, de = dy
  int samples = 0;
  /// [R, 4]: the sample's first token, frames, height, width. Samples must not exceed a table.
  const std::int32_t* grids = nullptr;
};

struct PositionsForward : Positions {
  const float* tables[3] = {};  ///< [*, D]: t, h, w
  float* result = nullptr;      ///< [S, D] output
  float* norms = nullptr;       ///< [S] output: n, for backward
};

struct PositionsBackward : Positions {
  const float* result = nullptr;  ///< from forward
  const float* norms = nullptr;   ///< from forward
  const float* dy = nullptr;      ///< [S, D]
  float* scratch = nullptr;       ///< scratch of 2 S floats
  int rows[3] = {};               ///< numbers of rows of the tables
  /// [rows, D] each, output: overwritten, with zeros in rows that no token used; null if not
  /// wanted.
  float* gradients[3] = {};
};

/// Both return a cudaError_t: 0 on success, the launch's error, or 1 (invalid value) for sizes
/// below zero, 2^31 tokens or more, a width above 4,194,240, or tokens without samples.
int positions_forward(const PositionsForward& call, CUstream_st* stream);
int positions_backward(const PositionsBackward& call, CUstream_st* stream);

/// Writes result [R, D] from times [R], computed in double and rounded at the end. D is even.
/// Returns like the others.
int sinusoid(const float* times, std::int64_t rows, int width, float* result, CUstream_st* stream);

}  // namespace vfm::kernels

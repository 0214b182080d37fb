// Learned absolute positions, forward and backward, and the sinusoid of the time input: the CUDA
// versions of learned_positions, for a step of 1, and sinusoid in lib/ops/position/positions.h,
// where the formulas are.
//
//   e = t[frame] + h[row] + w[column],   y = e / n,   n = 1e-6 + rms(e)
//   de = (dy - y mean(dy y) n / rms(e)) / n, with n a constant where e = 0
//
// The gradient of a row of a table is the sum of de over the tokens that took it. One block owns
// the row, finds the tokens from the grids and adds them in an order that depends on the grids
// only: no index is built, no memory is shared, and the bits are the same on every GPU.
// Source of the formula: NVIDIA, "Cosmos World Foundation Model Platform" (2025).
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// What both directions need; S tokens, D width, R samples. The tokens of a sample stand together,
/// frame by frame, then row by row, and the samples in order: S is the sum of frames * height *
/// width. All sizes may be 0. Fast where D is a multiple of 4 and the arrays are aligned to 16
/// bytes; right otherwise.
struct Positions {
  std::int64_t tokens = 0;  ///< below 2^31
  int width = 0;
  bool unit = true;  ///< false: y = e, n = 1, de = dy
  int samples = 0;
  /// [R, 4]: the sample's first token, frames, height, width. No sample reaches beyond a table.
  const std::int32_t* grids = nullptr;
};

struct PositionsForward : Positions {
  const float* tables[3] = {};  ///< [*, D]: t, h, w
  float* result = nullptr;      ///< [S, D] out
  float* norms = nullptr;       ///< [S] out: n, for backward
};

struct PositionsBackward : Positions {
  const float* result = nullptr;  ///< what forward wrote
  const float* norms = nullptr;   ///< what forward wrote
  const float* dy = nullptr;      ///< [S, D]
  float* scratch = nullptr;       ///< room for 2 S floats
  int rows[3] = {};               ///< of the tables
  /// [rows, D] each, out: overwritten, with zeros in rows that no token took; null: not wanted.
  float* gradients[3] = {};
};

/// Both return a cudaError_t: 0, or what is wrong with the launch; 1 (invalid value) for sizes
/// below zero, 2^31 tokens or more, a width above 4,194,240, and tokens without samples.
int positions_forward(const PositionsForward& call, CUstream_st* stream);
int positions_backward(const PositionsBackward& call, CUstream_st* stream);

/// result [R, D] from times [R]: in double, rounded at the end. D is even. Returns as the others.
int sinusoid(const float* times, std::int64_t rows, int width, float* result, CUstream_st* stream);

}  // namespace vfm::kernels

// Backward of kernels/modulate.h: the CUDA version of the backward pass of
// lib/ops/norm/modulate.cc.
//
//   n = (stream - mean) rstd,  g = dnormed (1 + scale[row])
//   dx = dstream + rstd (g - mean(g) - n mean(g n)),  dbranch = gate[row] dx
//   (without mean(g) if not centred)
//   dshift[row] = sum dnormed,  dscale[row] = sum dnormed n,  dgate[row] = sum dx branch
//
// The sums are over the tokens of a modulation row, in two stages. A run of tokens of one row gives
// one row of partial sums, added token after token. modulate_reduce adds the partial sums in the
// order of the runs. The same runs therefore give the same bits on any GPU.
//
// dnormed, dstream, stream and branch are read once, dx and dbranch written once, dextra both. One
// block per run keeps its sums in registers and loads the next token while it computes the current
// one. Rows wider than 4,096 are split into equal slabs, one block each. The sums of g then need
// all of dnormed and stream in every slab, which mostly come from the L2 cache.
// Thread-safety: launches on the given stream; keeps no state.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Tokens begin..end-1, all of modulation row `row`. The layout is that of ops::RowRun.
///
/// One block processes a run, or one block per slab. Each of its threads has four columns; 1,024
/// threads fill a multiprocessor. lib/ops/norm/row_map.cc chooses the length of runs.
struct ModulateRun {
  std::int64_t begin = 0, end = 0;
  std::int32_t row = 0;
};

/// Device pointers of one call; S tokens (below 2^31), D width, R modulation rows, N runs. Rows are
/// D elements apart unless there is a stride; strides count floats. Every pointer is aligned to 16
/// bytes; D and the strides are multiples of 4. Outputs must not overlap other arrays unless
/// stated.
struct ModulateBackward {
  int width = 0;
  Type type = Type::f32;           ///< of branch, dnormed and dbranch
  bool centred = true;             ///< as in forward
  const float* stream = nullptr;   ///< [S, D], from forward; required with dnormed
  const float* moments = nullptr;  ///< [S, 2], from forward; required with dnormed
  const void* branch = nullptr;    ///< [S, D]; null if nothing was gated
  const float* gate = nullptr;     ///< [R, D]; required with branch
  std::int64_t gate_stride = 0;
  const float* modulation = nullptr;  ///< [R, 2 D]: shift, then scale; required with dnormed
  std::int64_t modulation_stride = 0;
  const void* dnormed = nullptr;      ///< [S, D]; null for zero, then dstream is required
  const float* dstream = nullptr;     ///< [S, D]; null for zero
  float* dx = nullptr;                ///< [S, D] output, also the gradient of extra; may be dstream
  void* dbranch = nullptr;            ///< [S, D] output; required with branch
  const ModulateRun* runs = nullptr;  ///< [N]; every token is in exactly one
  std::int64_t run_count = 0;
  float* partial = nullptr;  ///< [N, 3 D] output: sums of dshift, dscale, dgate (0 without branch)
};

/// Writes dx, dbranch and partial, and adds dx to `dextra` [S, D] unless it is null. (As a field of
/// the struct, dextra would cost the kernel registers.) Returns a cudaError_t: 0 on success, the
/// launch's error, or 1 (invalid value) for a width that is not a positive multiple of 4, or with
/// neither dnormed nor dstream. A call without runs succeeds.
int modulate_backward(const ModulateBackward& call, float* dextra, CUstream_st* stream);

/// Call after modulate_backward: sums[row] = the partial sums of the row's runs, added in order;
/// zero for a row without runs. `sums` is [rows, 3 D]; all runs' rows are below `rows`.
int modulate_reduce(const ModulateBackward& call, std::int64_t rows, float* sums,
                    CUstream_st* stream);

}  // namespace vfm::kernels

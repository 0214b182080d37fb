// Backward of kernels/modulate.h, the CUDA version of what lib/ops/norm/modulate.cc does in
// backward:
//
//   n = (stream - mean) rstd,  g = dnormed (1 + scale[row])
//   dx = dstream + rstd (g - mean(g) - n mean(g n)),  dbranch = gate[row] dx
// without mean(g) where it was not centred;
//   dshift[row] = sum dnormed,  dscale[row] = sum dnormed n,  dgate[row] = sum dx branch
//
// where the sums are over the tokens of a modulation row, in two fixed stages: a run of tokens of
// one row gives one row of partial sums, token after token; modulate_reduce adds these in the order
// of the runs. So the same runs give the same bits, on any GPU.
//
// dnormed, dstream, stream and branch are read once, dx and dbranch written once, dextra both: one
// block a run keeps its sums in registers, and loads the next token while it works on this one.
// Rows wider than 4,096 are cut into equal slabs, one block each; there the sums of g need all of
// dnormed and stream in every slab, mostly from the L2 cache.
// Thread-safety: launches on the given stream; keeps nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "type.h"

struct CUstream_st;  // cudaStream_t

namespace vfm::kernels {

/// Tokens begin..end-1, all of modulation row `row`. The layout of ops::RowRun.
///
/// A run is the work of one block, or of one for each slab, whose threads have four columns each;
/// 1,024 threads fill a multiprocessor. lib/ops/norm/row_map.cc chooses how long runs are.
struct ModulateRun {
  std::int64_t begin = 0, end = 0;
  std::int32_t row = 0;
};

/// Device pointers of one call; S tokens (below 2^31), D width, R modulation rows, N runs. Rows are
/// D elements apart unless a stride says otherwise; strides count floats. Every pointer is aligned
/// to 16 bytes, D and the strides are multiples of 4. Outputs overlap nothing but where it is said.
struct ModulateBackward {
  int width = 0;
  Type type = Type::f32;           ///< of branch, dnormed and dbranch
  bool centred = true;             ///< as in forward
  const float* stream = nullptr;   ///< [S, D], from forward; goes with dnormed
  const float* moments = nullptr;  ///< [S, 2], from forward; goes with dnormed
  const void* branch = nullptr;    ///< [S, D], or null: nothing was gated
  const float* gate = nullptr;     ///< [R, D]; goes with branch
  std::int64_t gate_stride = 0;
  const float* modulation = nullptr;  ///< [R, 2 D]: shift, then scale; goes with dnormed
  std::int64_t modulation_stride = 0;
  const void* dnormed = nullptr;      ///< [S, D], or null for zero: then there is dstream
  const float* dstream = nullptr;     ///< [S, D], or null for zero
  float* dx = nullptr;                ///< [S, D] out; may be dstream. Also the gradient of extra
  void* dbranch = nullptr;            ///< [S, D] out; goes with branch
  const ModulateRun* runs = nullptr;  ///< [N]; every token is in exactly one
  std::int64_t run_count = 0;
  float* partial = nullptr;  ///< [N, 3 D] out: sums of dshift, dscale, dgate (0 without branch)
};

/// Writes dx, dbranch and partial, and adds dx to `dextra` [S, D] unless that is null. (Among the
/// others it would cost the kernel registers.) Returns a cudaError_t: 0, or what is wrong with the
/// launch; 1 (invalid value) for a width that is not a positive multiple of 4, and for neither
/// dnormed nor dstream. No runs are no error.
int modulate_backward(const ModulateBackward& call, float* dextra, CUstream_st* stream);

/// After modulate_backward: sums[row] = the partial sums of the row's runs, added in their order,
/// zero for a row without runs. `sums` is [rows, 3 D]; no run's row is `rows` or above.
int modulate_reduce(const ModulateBackward& call, std::int64_t rows, float* sums,
                    CUstream_st* stream);

}  // namespace vfm::kernels

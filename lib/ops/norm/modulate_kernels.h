// The kernels behind modulate.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"
#include "ops/norm/row_map.h"

namespace vfm::ops {

struct Quantized;  // ops/matmul/quantize.h

/// Plain pointers of one call. T is the element type `type`.
struct ModulateArgs {
  std::int64_t tokens = 0, width = 0;
  DType type = DType::f32;
  float epsilon = 0;
  bool centred = true;
  const float* x = nullptr;           // [S, D]
  const void* branch = nullptr;       // [S, D] T, or null
  const float* gate = nullptr;        // first gate of row 0
  std::int64_t gate_stride = 0;       // floats between rows
  const float* extra = nullptr;       // [S, D], or null
  const float* modulation = nullptr;  // shift, then scale; null if normed is null
  std::int64_t modulation_stride = 0;
  const std::int32_t* rows = nullptr;
  float* stream = nullptr;   // [S, D]; may be x if nothing is added
  void* normed = nullptr;    // [S, D] T; null for no norm
  float* moments = nullptr;  // [S, 2]: mean (0 if not centred) and 1 / deviation; null if normed is
};

struct ModulateBackwardArgs {
  ModulateArgs forward;            // the arguments of forward
  const void* dnormed = nullptr;   // [S, D] T; null for zero, then dstream is not null
  const float* dstream = nullptr;  // [S, D], or null for zero
  float* dx = nullptr;             // [S, D]; may be dstream
  float* dextra = nullptr;         // [S, D] += dx, or null
  void* dbranch = nullptr;         // [S, D] T, or null
  const RowRun* runs = nullptr;
  std::int64_t run_count = 0;
  float* partial = nullptr;  // [run_count, 3 D]: sums of dshift, dscale, dgate
};

VFM_ISA_KERNEL(void, modulate_forward, const ModulateArgs& args)
VFM_ISA_KERNEL(void, modulate_backward, const ModulateBackwardArgs& args)
// sums [rows, 3 D], zeroed by the caller: sums[row] = sum of the row's partial sums, in run order
VFM_ISA_KERNEL(void, modulate_reduce, const ModulateBackwardArgs& args, std::int64_t rows,
               float* sums)

// args.normed is null. The result is `normed`, [S, D], rounded to args.type before it is quantised.
VFM_KERNEL(void, modulate_fp8, const ModulateArgs& args, const Quantized& normed)

}  // namespace vfm::ops

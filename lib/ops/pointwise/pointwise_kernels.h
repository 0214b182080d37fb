// The kernels of elementwise ops and of rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/kernel.h"
#include "ops/pointwise/activation_kind.h"
#include "ops/pointwise/fsq.h"
#include "ops/pointwise/rows.h"

namespace vfm::ops {

// The kernels behind add.h.

// y += x
VFM_ISA_KERNEL(void, add_into, DType y_type, void* y, DType x_type, const void* x, std::int64_t n)
// own = the sum in order of `parts` terms of n elements each: term `place` is own, the others are
// `others`
VFM_ISA_KERNEL(void, add_in_order, DType type, void* own, int place, const void* others, int parts,
               std::int64_t n)
// sum = a + the first columns of b; db = dsum, then zeros: [rows, narrow], [rows, wide]
VFM_ISA_KERNEL(void, add_columns, const float* a, const float* b, float* sum, std::int64_t rows,
               std::int64_t narrow, std::int64_t wide)
VFM_ISA_KERNEL(void, add_columns_backward, const float* dsum, float* db, std::int64_t rows,
               std::int64_t narrow, std::int64_t wide)

// The kernels behind fsq.h.

VFM_KERNEL(void, fsq_forward, const Tensor& z, const FsqLevels& levels, const Tensor& values)
/// Computes dz, the gradient of z, from the gradient of the values.
VFM_KERNEL(void, fsq_backward, const Tensor& z, const FsqLevels& levels, const Tensor& dvalues,
           const Tensor& dz)

// The kernels behind activations.h.

// y = f(x) of the kind, and dx = dy f'(x) of the kinds but quick_gelu. y may be x, dx dy. All have
// `type`. Backward also computes y, with the same bits, unless it is null.
VFM_ISA_KERNEL(void, activation_forward, DType type, ActivationKind kind, const void* x, void* y,
               std::int64_t n)
VFM_ISA_KERNEL(void, activation_backward, DType type, ActivationKind kind, const void* x,
               const void* dy, void* dx, void* y, std::int64_t n)

// y = silu(x), and dx = dy silu'(x)
VFM_ISA_KERNEL(void, silu_forward, const float* x, float* y, std::int64_t n)
VFM_ISA_KERNEL(void, silu_backward, const float* x, const float* dy, float* dx, std::int64_t n)

// x [rows, 2 width], y [rows, width]; all have `type`
VFM_ISA_KERNEL(void, swiglu_forward, DType type, const void* x, void* y, std::int64_t rows,
               std::int64_t width)
VFM_ISA_KERNEL(void, swiglu_backward, DType type, const void* x, const void* dy, void* dx,
               std::int64_t rows, std::int64_t width)

// x = max(x, 0); x = gelu(x) factor with the tanh gelu; all have `type`
VFM_ISA_KERNEL(void, relu, DType type, void* x, std::int64_t n)
VFM_ISA_KERNEL(void, gated_gelu, DType type, void* x, const void* factor, std::int64_t n)

// The kernels behind rows.h.

VFM_KERNEL(void, gather_rows, const Tensor& x, const Tensor& numbers, const Tensor& y)
VFM_KERNEL(void, add_rows, const Tensor& x, const RowTakers& takers, const Tensor& to)

}  // namespace vfm::ops

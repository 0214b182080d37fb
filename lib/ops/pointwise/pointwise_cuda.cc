// SPDX-License-Identifier: Apache-2.0

#include "kernels/elementwise.h"
#include "kernels/ordered_sum.h"
#include "kernels/reconstruction.h"
#include "kernels/rows.h"
#include "ops/pointwise/pointwise_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops {

namespace {

static_assert(kernels::kMostLevels == kMostFsqLevels);

// With `gradient`, that of the values, the gradient of z.
void run(const Tensor& z, const FsqLevels& levels, const Tensor& gradient, const Tensor& out) {
  kernels::Fsq call;
  call.levels.dimensions = static_cast<int>(levels.dimensions);
  for (std::size_t d = 0; d < levels.dimensions; ++d) {
    call.levels.half[d] = levels.half[d];
    call.levels.offset[d] = levels.offset[d];
    call.levels.shift[d] = levels.shift[d];
    call.levels.middle[d] = levels.middle[d];
    call.levels.lowest[d] = levels.lowest[d];
    call.levels.highest[d] = levels.highest[d];
  }
  call.count = z.elements();
  call.z = z.data<float>();
  if (gradient.defined()) call.gradient = gradient.data<float>();
  call.out = out.data<float>();
  check_gpu(kernels::fsq(call, compute_stream()), "quantise to levels");
}

}  // namespace

void cuda::fsq_forward(const Tensor& z, const FsqLevels& levels, const Tensor& values) {
  run(z, levels, {}, values);
}

void cuda::fsq_backward(const Tensor& z, const FsqLevels& levels, const Tensor& dvalues,
                        const Tensor& dz) {
  run(z, levels, dvalues, dz);
}

void cuda::gather_rows(const Tensor& x, const Tensor& numbers, const Tensor& y) {
  const auto bytes = x.size(1) * static_cast<std::int64_t>(dtype_size(x.dtype()));
  check_gpu(kernels::gather_rows(x.raw(), numbers.data<std::int32_t>(), y.raw(), numbers.elements(),
                                 bytes, compute_stream()),
            "take rows");
}

void cuda::add_rows(const Tensor& x, const RowTakers& takers, const Tensor& to) {
  const Tensor rows = upload(takers.rows), begin = upload(takers.begin);
  const Tensor list = upload(takers.takers);
  kernels::RowSums call;
  call.rows = static_cast<std::int64_t>(takers.rows.size());
  call.width = x.size(1);
  call.row = rows.data<std::int32_t>();
  call.begin = begin.data<std::int32_t>();
  call.takers = list.data<std::int32_t>();
  call.x = x.data<float>();
  call.to = to.data<float>();
  check_gpu(kernels::add_rows(call, compute_stream()), "add rows");
}

}  // namespace vfm::ops

namespace vfm::ops::cuda {

void add_into(DType y_type, void* y, DType x_type, const void* x, std::int64_t n) {
  check_gpu(kernels::add_into(kernel_type(y_type), y, kernel_type(x_type), x, n, compute_stream()),
            "run add");
}

void add_in_order(DType type, void* own, int place, const void* others, int parts, std::int64_t n) {
  check_gpu(kernels::ordered_sum(kernel_type(type), own, place, others, n, parts, own, n,
                                 compute_stream()),
            "run add in order");
}

void add_columns(const float* a, const float* b, float* sum, std::int64_t rows, std::int64_t narrow,
                 std::int64_t wide) {
  check_gpu(kernels::add_columns(a, b, sum, rows, narrow, wide, compute_stream()), "run add");
}

void add_columns_backward(const float* dsum, float* db, std::int64_t rows, std::int64_t narrow,
                          std::int64_t wide) {
  check_gpu(kernels::add_columns_backward(dsum, db, rows, narrow, wide, compute_stream()),
            "run add backward");
}

namespace {

kernels::ActivationKind activation_kind(ActivationKind kind) {
  return kind == ActivationKind::tanh_gelu    ? kernels::ActivationKind::tanh_gelu
         : kind == ActivationKind::gelu       ? kernels::ActivationKind::gelu
         : kind == ActivationKind::quick_gelu ? kernels::ActivationKind::quick_gelu
                                              : kernels::ActivationKind::squared_relu;
}

}  // namespace

void activation_forward(DType type, ActivationKind kind, const void* x, void* y, std::int64_t n) {
  check_gpu(kernels::activation_forward(kernel_type(type), activation_kind(kind), x, y, n,
                                        compute_stream()),
            "run gelu");
}

void activation_backward(DType type, ActivationKind kind, const void* x, const void* dy, void* dx,
                         void* y, std::int64_t n) {
  check_gpu(kernels::activation_backward(kernel_type(type), activation_kind(kind), x, dy, dx, y, n,
                                         compute_stream()),
            "run gelu backward");
}

void silu_forward(const float* x, float* y, std::int64_t n) {
  check_gpu(kernels::silu_forward(x, y, n, compute_stream()), "run silu");
}

void silu_backward(const float* x, const float* dy, float* dx, std::int64_t n) {
  check_gpu(kernels::silu_backward(x, dy, dx, n, compute_stream()), "run silu backward");
}

void swiglu_forward(DType type, const void* x, void* y, std::int64_t rows, std::int64_t width) {
  check_gpu(kernels::swiglu_forward(kernel_type(type), x, y, rows, width, compute_stream()),
            "run swiglu");
}

void swiglu_backward(DType type, const void* x, const void* dy, void* dx, std::int64_t rows,
                     std::int64_t width) {
  check_gpu(kernels::swiglu_backward(kernel_type(type), x, dy, dx, rows, width, compute_stream()),
            "run swiglu backward");
}

void relu(DType type, void* x, std::int64_t n) {
  check_gpu(kernels::relu(kernel_type(type), x, n, compute_stream()), "run relu");
}

void gated_gelu(DType type, void* x, const void* factor, std::int64_t n) {
  check_gpu(kernels::gated_gelu(kernel_type(type), x, factor, n, compute_stream()),
            "run gated gelu");
}

}  // namespace vfm::ops::cuda

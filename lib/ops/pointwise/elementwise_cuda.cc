// The CUDA versions of the kernels of elementwise_cpu.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.h"
#include "kernels/optimizer.h"
#include "ops/pointwise/elementwise_cpu.h"
#include "tensor/device.h"

namespace vfm::ops::cuda {
namespace {

using kernels::Type;

template <class T>
constexpr Type type_of() {
  return sizeof(T) == sizeof(float) ? Type::f32 : Type::bf16;
}

template <class Y, class X>
void add(Y* y, const X* x, std::int64_t n) {
  check_gpu(kernels::add_into(type_of<Y>(), y, type_of<X>(), x, n, compute_stream()), "run add");
}

template <class T>
void gelu(const T* x, T* y, std::int64_t n) {
  check_gpu(kernels::gelu_forward(type_of<T>(), x, y, n, compute_stream()), "run gelu");
}

template <class T>
void gelu_back(const T* x, const T* dy, T* dx, std::int64_t n) {
  check_gpu(kernels::gelu_backward(type_of<T>(), x, dy, dx, n, compute_stream()),
            "run gelu backward");
}

template <class T>
void swiglu(const T* x, T* y, std::int64_t rows, std::int64_t width) {
  check_gpu(kernels::swiglu_forward(type_of<T>(), x, y, rows, width, compute_stream()),
            "run swiglu");
}

template <class T>
void swiglu_back(const T* x, const T* dy, T* dx, std::int64_t rows, std::int64_t width) {
  check_gpu(kernels::swiglu_backward(type_of<T>(), x, dy, dx, rows, width, compute_stream()),
            "run swiglu backward");
}

template <class T>
void relu_all(T* x, std::int64_t n) {
  check_gpu(kernels::relu(type_of<T>(), x, n, compute_stream()), "run relu");
}

template <class T>
void gated_gelu_all(T* x, const T* factor, std::int64_t n) {
  check_gpu(kernels::gated_gelu(type_of<T>(), x, factor, n, compute_stream()), "run gated gelu");
}

template <class T>
void scaled_columns(T* y, std::int64_t wide, const T* x, std::int64_t narrow, std::int64_t rows,
                    float scale) {
  check_gpu(
      kernels::add_scaled_columns(type_of<T>(), y, wide, x, narrow, rows, scale, compute_stream()),
      "run add of columns");
}

}  // namespace

void add_into(float* y, const float* x, std::int64_t n) {
  add(y, x, n);
}
void add_into(float* y, const std::uint16_t* x, std::int64_t n) {
  add(y, x, n);
}
void add_into(std::uint16_t* y, const float* x, std::int64_t n) {
  add(y, x, n);
}
void add_into(std::uint16_t* y, const std::uint16_t* x, std::int64_t n) {
  add(y, x, n);
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
void add_scaled_columns(float* y, std::int64_t wide, const float* x, std::int64_t narrow,
                        std::int64_t rows, float scale) {
  scaled_columns(y, wide, x, narrow, rows, scale);
}
void add_scaled_columns(std::uint16_t* y, std::int64_t wide, const std::uint16_t* x,
                        std::int64_t narrow, std::int64_t rows, float scale) {
  scaled_columns(y, wide, x, narrow, rows, scale);
}
void gelu_forward(const float* x, float* y, std::int64_t n) {
  gelu(x, y, n);
}
void gelu_forward(const std::uint16_t* x, std::uint16_t* y, std::int64_t n) {
  gelu(x, y, n);
}
void gelu_backward(const float* x, const float* dy, float* dx, std::int64_t n) {
  gelu_back(x, dy, dx, n);
}
void gelu_backward(const std::uint16_t* x, const std::uint16_t* dy, std::uint16_t* dx,
                   std::int64_t n) {
  gelu_back(x, dy, dx, n);
}
void relu(float* x, std::int64_t n) {
  relu_all(x, n);
}
void relu(std::uint16_t* x, std::int64_t n) {
  relu_all(x, n);
}
void gated_gelu(float* x, const float* factor, std::int64_t n) {
  gated_gelu_all(x, factor, n);
}
void gated_gelu(std::uint16_t* x, const std::uint16_t* factor, std::int64_t n) {
  gated_gelu_all(x, factor, n);
}
void silu_forward(const float* x, float* y, std::int64_t n) {
  check_gpu(kernels::silu_forward(x, y, n, compute_stream()), "run silu");
}
void silu_backward(const float* x, const float* dy, float* dx, std::int64_t n) {
  check_gpu(kernels::silu_backward(x, dy, dx, n, compute_stream()), "run silu backward");
}

void swiglu_forward(const float* x, float* y, std::int64_t rows, std::int64_t width) {
  swiglu(x, y, rows, width);
}
void swiglu_forward(const std::uint16_t* x, std::uint16_t* y, std::int64_t rows,
                    std::int64_t width) {
  swiglu(x, y, rows, width);
}
void swiglu_backward(const float* x, const float* dy, float* dx, std::int64_t rows,
                     std::int64_t width) {
  swiglu_back(x, dy, dx, rows, width);
}
void swiglu_backward(const std::uint16_t* x, const std::uint16_t* dy, std::uint16_t* dx,
                     std::int64_t rows, std::int64_t width) {
  swiglu_back(x, dy, dx, rows, width);
}

void split_weights(const float* weights, std::uint16_t* high, std::uint16_t* low, std::int64_t n) {
  check_gpu(kernels::split_weights(weights, high, low, n, compute_stream()), "split weights");
}
void join_weights(const std::uint16_t* high, const std::uint16_t* low, float* weights,
                  std::int64_t n) {
  check_gpu(kernels::join_weights(high, low, weights, n, compute_stream()), "join weights");
}

}  // namespace vfm::ops::cuda

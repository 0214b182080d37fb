// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/bias.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/half.h"
#include "ops/added_gradient.h"
#include "ops/matmul/matmul_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

void add_bias_gradient(Tape& tape, const Tensor& dy, const Tensor& bias) {
  if (!dy.defined() || dy.size(0) == 0) return;
  const AddedGradient sum(tape, bias);
  const Touching work = Touching(dy, sum.tensor()).gpu_scratch([&] {
    return kBiasParts * sizeof(float) * static_cast<std::size_t>(dy.size(1));
  });
  VFM_RUN(work, bias_gradient, dy.dtype(), dy.raw(), dy.size(0), dy.size(1), sum.data());
  sum.finish();
}

}  // namespace

void add_bias(const Tensor& y, std::int64_t first, const Tensor& bias) {
  if (y.dims() != 2 || bias.dims() != 1 || (y.dtype() != DType::f32 && y.dtype() != DType::bf16) ||
      bias.dtype() != DType::f32 || y.device() != bias.device() || first < 0 ||
      first + bias.size(0) > y.size(1))
    fail("a bias {} {} does not fit {} {} from column {} on", dtype_name(bias.dtype()),
         to_string(bias.shape()), dtype_name(y.dtype()), to_string(y.shape()), first);
  const Touching work = Touching(bias).columns(y, bias.size(0)).columns(y, bias.size(0));
  std::byte* const to =
      y.data<std::byte>() + static_cast<std::size_t>(first) * dtype_size(y.dtype());
  VFM_RUN(work, add_bias, y.dtype(), to, y.size(0), y.size(1), bias.data<float>(), bias.size(0));
}

// Of all columns, where the other one takes some. The op that made y takes y's gradient once what
// is recorded here has read it.
void add_bias(Tape& tape, const Tensor& y, const Tensor& bias) {
  if (!bias.defined()) return;
  if (y.dims() != 2 || bias.elements() != y.size(1))
    fail("a bias {} does not fit a product {}", to_string(bias.shape()), to_string(y.shape()));
  add_bias(y, 0, bias);
  if (!tape.wants_grad(bias)) return;
  const auto backward = [y, bias](Tape& t) { add_bias_gradient(t, t.grad(y), bias); };
  if (tape.wants_grad(y))
    tape.in_backward(backward);
  else
    tape.record(y, {bias}, backward);
}

namespace {

// Below so many elements one thread goes through them sooner than several are woken.
constexpr std::int64_t kBiasAlone = 16384;
// Of a gradient. Sums of few rows are added up, since f32 has few digits for millions of rows.
constexpr std::int64_t kBiasColumns = 64, kBiasRows = 256;

float wide_of(float v) {
  return v;
}
float wide_of(std::uint16_t v) {
  return bfloat16_to_float(v);
}
void narrow_to(float& to, float v) {
  to = v;
}
void narrow_to(std::uint16_t& to, float v) {
  to = float_to_bfloat16(v);
}

template <class T>
void add_bias_of(T* y, std::int64_t rows, std::int64_t stride, const float* bias,
                 std::int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width > kBiasAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    T* const to = y + row * stride;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i)
      narrow_to(to[i], wide_of(to[i]) + bias[i]);
  }
}

template <class T>
void bias_gradient_of(const T* dy, std::int64_t rows, std::int64_t width, float* sum) {
#pragma omp parallel for schedule(static) if (rows * width > kBiasAlone)
  for (std::int64_t first = 0; first < width; first += kBiasColumns) {
    const std::int64_t count = std::min(kBiasColumns, width - first);
    std::array<float, kBiasColumns> all{};
    for (std::int64_t begin = 0; begin < rows; begin += kBiasRows) {
      std::array<float, kBiasColumns> few{};
      for (std::int64_t row = begin; row < std::min(rows, begin + kBiasRows); ++row) {
        const T* const from = dy + row * width + first;
        for (std::int64_t i = 0; i < count; ++i)
          few[static_cast<std::size_t>(i)] += wide_of(from[i]);
      }
      for (std::size_t i = 0; i < few.size(); ++i)
        all[i] += few[i];
    }
    for (std::int64_t i = 0; i < count; ++i)
      sum[first + i] += all[static_cast<std::size_t>(i)];
  }
}

}  // namespace

void cpu::add_bias(DType type, void* y, std::int64_t rows, std::int64_t stride, const float* bias,
                   std::int64_t width) {
  if (type == DType::f32)
    add_bias_of(static_cast<float*>(y), rows, stride, bias, width);
  else
    add_bias_of(static_cast<std::uint16_t*>(y), rows, stride, bias, width);
}

void cpu::bias_gradient(DType type, const void* dy, std::int64_t rows, std::int64_t width,
                        float* sum) {
  if (type == DType::f32)
    bias_gradient_of(static_cast<const float*>(dy), rows, width, sum);
  else
    bias_gradient_of(static_cast<const std::uint16_t*>(dy), rows, width, sum);
}

}  // namespace vfm::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise_cpu.h"

#include "ops/elementary.h"

namespace vfm::ops::VFM_ISA {
namespace {

// Below this many elements, waking the other threads costs more than they save.
constexpr std::int64_t kAlone = 16384;
constexpr float kInvSqrt2 = 0.70710678f;
constexpr float kInvSqrt2Pi = 0.39894228f;

template <class A, class B>
void add_all(A* y, const B* x, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    store(y + i, load(y + i) + load(x + i));
}

template <class T>
void gelu_all(const T* x, T* y, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = load(x + i);
    store(y + i, 0.5f * v * (1.f + erf_f(v * kInvSqrt2)));
  }
}

// d/dx of x Phi(x) is Phi(x) + x phi(x).
template <class T>
void gelu_back(const T* x, const T* dy, T* dx, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = load(x + i);
    const float slope =
        0.5f * (1.f + erf_f(v * kInvSqrt2)) + v * kInvSqrt2Pi * exp_f(-0.5f * v * v);
    store(dx + i, load(dy + i) * slope);
  }
}

}  // namespace

void add_into(float* y, const float* x, std::int64_t n) {
  add_all(y, x, n);
}
void add_into(float* y, const bf16* x, std::int64_t n) {
  add_all(y, x, n);
}
void add_into(bf16* y, const float* x, std::int64_t n) {
  add_all(y, x, n);
}
void add_into(bf16* y, const bf16* x, std::int64_t n) {
  add_all(y, x, n);
}

void gelu_forward(const float* x, float* y, std::int64_t n) {
  gelu_all(x, y, n);
}
void gelu_forward(const bf16* x, bf16* y, std::int64_t n) {
  gelu_all(x, y, n);
}
void gelu_backward(const float* x, const float* dy, float* dx, std::int64_t n) {
  gelu_back(x, dy, dx, n);
}
void gelu_backward(const bf16* x, const bf16* dy, bf16* dx, std::int64_t n) {
  gelu_back(x, dy, dx, n);
}

void silu_forward(const float* x, float* y, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = x[i] / (1.f + exp_f(-x[i]));
}

void silu_backward(const float* x, const float* dy, float* dx, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i) {
    const float s = 1.f / (1.f + exp_f(-x[i]));
    dx[i] = dy[i] * s * (1.f + x[i] * (1.f - s));
  }
}

void adamw_chunk(const AdamwSlot& slot, const AdamwStep& step, float correction1, float correction2,
                 std::int64_t begin, std::int64_t end) {
  float* const value = slot.value;
  const float* const gradient = slot.gradient;
  float* const first = slot.first_moment;
  float* const second = slot.second_moment;
  float* const ema = slot.ema;
  const float beta1 = step.beta1, beta2 = step.beta2, scale = step.gradient_scale;
  const float keep = 1.f - step.learning_rate * slot.weight_decay;
  const float rate = step.learning_rate / correction1;
  const float inverse2 = 1.f / correction2, epsilon = step.epsilon;
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) {
    const float g = gradient[i] * scale;
    const float m = beta1 * first[i] + (1.f - beta1) * g;
    const float v = beta2 * second[i] + (1.f - beta2) * g * g;
    first[i] = m;
    second[i] = v;
    value[i] = value[i] * keep - rate * m / (__builtin_sqrtf(v * inverse2) + epsilon);
  }
  if (ema == nullptr) return;
  const float decay = step.ema_decay;
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i)
    ema[i] = decay * ema[i] + (1.f - decay) * value[i];
}

double sum_squares_chunk(const float* x, std::int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i)
    sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

void add_columns(const float* a, const float* b, float* sum, std::int64_t rows, std::int64_t narrow,
                 std::int64_t wide) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < narrow; ++j)
      sum[i * narrow + j] = a[i * narrow + j] + b[i * wide + j];
}

void add_columns_backward(const float* dsum, float* db, std::int64_t rows, std::int64_t narrow,
                          std::int64_t wide) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < wide; ++j)
      db[i * wide + j] = j < narrow ? dsum[i * narrow + j] : 0;
}

}  // namespace vfm::ops::VFM_ISA

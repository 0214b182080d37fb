// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/elementwise_cpu.h"

#include "ops/cpu/elementary.h"

namespace vfm::ops::VFM_ISA {
namespace {

// Below this many elements, waking the other threads costs more than they save.
constexpr std::int64_t kAlone = 16384;
constexpr float kInvSqrt2 = 0.70710678f;
constexpr float kInvSqrt2Pi = 0.39894228f;
constexpr float kTwoSqrt2OverPi = 1.59576912f;

template <class A, class B>
void add_all(A* y, const B* x, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    store(y + i, load(y + i) + load(x + i));
}

template <class T>
void scaled_columns(T* y, std::int64_t wide, const T* x, std::int64_t narrow, std::int64_t rows,
                    float scale) {
#pragma omp parallel for schedule(static) if (rows * narrow > kAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    T* to = y + row * wide;
    const T* from = x + row * narrow;
#pragma omp simd
    for (std::int64_t i = 0; i < narrow; ++i)
      store(to + i, load(to + i) + scale * load(from + i));
  }
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

template <class T>
void swiglu_all(const T* x, T* y, std::int64_t rows, std::int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width > kAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    const T *a = x + 2 * row * width, *b = a + width;
    T* out = y + row * width;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const float v = load(a + i);
      store(out + i, v / (1.f + exp_f(-v)) * load(b + i));
    }
  }
}

template <class T>
void swiglu_back(const T* x, const T* dy, T* dx, std::int64_t rows, std::int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width > kAlone)
  for (std::int64_t row = 0; row < rows; ++row) {
    const T *a = x + 2 * row * width, *b = a + width, *d = dy + row * width;
    T *da = dx + 2 * row * width, *db = da + width;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const float v = load(a + i), s = 1.f / (1.f + exp_f(-v)), g = load(d + i);
      store(da + i, g * load(b + i) * s * (1.f + v * (1.f - s)));
      store(db + i, g * v * s);
    }
  }
}

template <class T>
void relu_all(T* x, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = load(x + i);
    store(x + i, v < 0 ? 0.f : v);  // a NaN stays
  }
}

// (1 + tanh(u)) / 2 = 1 / (1 + e^-2u).
template <class T>
void gated_gelu_all(T* x, const T* factor, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = load(x + i);
    const float u2 = kTwoSqrt2OverPi * (v + 0.044715f * v * v * v);
    store(x + i, v / (1.f + exp_f(-u2)) * load(factor + i));
  }
}

// A split master's two halves: the second is a signed number.
inline float joined(bf16 high, bf16 low) {
  return bits_to_float((std::uint32_t{high} << 16) +
                       static_cast<std::uint32_t>(static_cast<std::int16_t>(low)));
}

// The weights of a parameter, one f32 each or split.
struct Plain {
  float* at;
  float get(std::int64_t i) const { return at[i]; }
  void set(std::int64_t i, float v) const { at[i] = v; }
};
struct Split {
  bf16 *high, *low;
  float get(std::int64_t i) const { return joined(high[i], low[i]); }
  void set(std::int64_t i, float v) const {
    std::uint32_t bits = float_to_bits(v);
    bits = (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : bits;  // no NaN that would run over
    high[i] = static_cast<bf16>((bits + 0x8000u) >> 16);
    low[i] = static_cast<bf16>(bits);
  }
};

template <class Moment, class Weights>
void adamw_some(const Weights weights, const AdamwSlot& slot, const AdamwStep& step,
                float correction1, float correction2, std::int64_t begin, std::int64_t end) {
  const float* const gradient = slot.gradient;
  Moment* const first = static_cast<Moment*>(slot.first_moment);
  Moment* const second = static_cast<Moment*>(slot.second_moment);
  float* const ema = slot.ema;
  const float beta1 = step.beta1, beta2 = step.beta2, scale = step.gradient_scale;
  const float keep = 1.f - step.learning_rate * slot.weight_decay;
  const float rate = step.learning_rate / correction1;
  const float inverse2 = 1.f / correction2, epsilon = step.epsilon;
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) {
    const float g = gradient[i] * scale;
    const float m = beta1 * load(first + i) + (1.f - beta1) * g;
    const float v = beta2 * load(second + i) + (1.f - beta2) * g * g;
    store(first + i, m);
    store(second + i, v);
    weights.set(i, weights.get(i) * keep - rate * m / (__builtin_sqrtf(v * inverse2) + epsilon));
  }
  if (ema == nullptr) return;
  const float decay = step.ema_decay;
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i)
    ema[i] = decay * ema[i] + (1.f - decay) * weights.get(i);
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

void relu(float* x, std::int64_t n) {
  relu_all(x, n);
}
void relu(bf16* x, std::int64_t n) {
  relu_all(x, n);
}
void gated_gelu(float* x, const float* factor, std::int64_t n) {
  gated_gelu_all(x, factor, n);
}
void gated_gelu(bf16* x, const bf16* factor, std::int64_t n) {
  gated_gelu_all(x, factor, n);
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

void swiglu_forward(const float* x, float* y, std::int64_t rows, std::int64_t width) {
  swiglu_all(x, y, rows, width);
}
void swiglu_forward(const bf16* x, bf16* y, std::int64_t rows, std::int64_t width) {
  swiglu_all(x, y, rows, width);
}
void swiglu_backward(const float* x, const float* dy, float* dx, std::int64_t rows,
                     std::int64_t width) {
  swiglu_back(x, dy, dx, rows, width);
}
void swiglu_backward(const bf16* x, const bf16* dy, bf16* dx, std::int64_t rows,
                     std::int64_t width) {
  swiglu_back(x, dy, dx, rows, width);
}

void adamw_chunk(const AdamwSlot& slot, const AdamwStep& step, float correction1, float correction2,
                 std::int64_t begin, std::int64_t end) {
  const bool low = slot.moments == DType::bf16;
  if (slot.value != nullptr) {
    const Plain weights{slot.value};
    low ? adamw_some<bf16>(weights, slot, step, correction1, correction2, begin, end)
        : adamw_some<float>(weights, slot, step, correction1, correction2, begin, end);
  } else {
    const Split weights{slot.high, slot.low};
    low ? adamw_some<bf16>(weights, slot, step, correction1, correction2, begin, end)
        : adamw_some<float>(weights, slot, step, correction1, correction2, begin, end);
  }
}

void split_weights(const float* weights, bf16* high, bf16* low, std::int64_t n) {
  const Split split{high, low};
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    split.set(i, weights[i]);
}

void join_weights(const bf16* high, const bf16* low, float* weights, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    weights[i] = joined(high[i], low[i]);
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

void add_scaled_columns(float* y, std::int64_t wide, const float* x, std::int64_t narrow,
                        std::int64_t rows, float scale) {
  scaled_columns(y, wide, x, narrow, rows, scale);
}
void add_scaled_columns(bf16* y, std::int64_t wide, const bf16* x, std::int64_t narrow,
                        std::int64_t rows, float scale) {
  scaled_columns(y, wide, x, narrow, rows, scale);
}

}  // namespace vfm::ops::VFM_ISA

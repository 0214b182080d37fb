// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu/simd.h"
#include "ops/optim/optim_kernels.h"
#include "ops/optim/split_weights.h"

namespace vfm::ops::VFM_ISA {

namespace {

// The weights of a parameter that are one f32 each.
struct Plain {
  float* at;
  float get(std::int64_t i) const { return at[i]; }
  void set(std::int64_t i, float v) const { at[i] = v; }
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

void adamw_chunk(const AdamwSlot& slot, const AdamwStep& step, float correction1, float correction2,
                 std::int64_t begin, std::int64_t end) {
  by_type(slot.moments, [&](auto moment) {
    using Moment = decltype(moment);
    if (slot.value != nullptr)
      adamw_some<Moment>(Plain{slot.value}, slot, step, correction1, correction2, begin, end);
    else
      adamw_some<Moment>(SplitWeights{slot.high, slot.low}, slot, step, correction1, correction2,
                         begin, end);
  });
}

namespace {

// Calls act(at, count) for the elements of a block that the part has, some that follow each other
// at a time.
template <class Act>
void for_each_stretch(const PartOfWhole& part, std::int64_t block, Act act) {
  std::int64_t at = block * kCodeBlock - part.first;  // from where the part's runs count
  const std::int64_t end = at + kCodeBlock;
  at = at < 0 ? 0 : at;
  while (at < end) {
    const std::int64_t run = at / part.stride, inside = at % part.stride;
    if (inside >= part.length) {
      at = (run + 1) * part.stride;
      continue;
    }
    const std::int64_t close = run * part.stride + part.length, stop = close < end ? close : end;
    const std::int64_t from = run * part.length + inside - part.begin, to = from + stop - at;
    const std::int64_t first = from < 0 ? 0 : from, last = to < part.count ? to : part.count;
    if (first < last) act(first, last - first);
    at = stop;
  }
}

template <class Act>
void for_each_block(const BlocksOfPart& blocks, Act act) {
  const bool alone = blocks.part.count <= kAlone;
#pragma omp parallel for schedule(static) if (!alone)
  for (std::int64_t block = blocks.first; block < blocks.end; ++block)
    for_each_stretch(blocks.part, block,
                     [&](std::int64_t at, std::int64_t count) { act(block, at, count); });
}

VFM_INLINE int code_of(float x, const float* limits) {
  int code = 0;
  for (int step = 128; step > 0; step /= 2)
    code += limits[code + step - 1] < x ? step : 0;
  return code;
}

}  // namespace

void decode_blocks(const std::uint8_t* codes, const float* scales, const float* numbers_of,
                   const BlocksOfPart& blocks, float* numbers) {
  for_each_block(blocks, [&](std::int64_t block, std::int64_t at, std::int64_t count) {
    const float scale = scales[block];
    for (std::int64_t i = at; i < at + count; ++i)
      numbers[i] = numbers_of[codes[i]] * scale;
  });
}

void scales_of_blocks(const float* numbers, const BlocksOfPart& blocks, float* scales) {
  const bool alone = blocks.part.count <= kAlone;
#pragma omp parallel for schedule(static) if (!alone)
  for (std::int64_t block = blocks.first; block < blocks.end; ++block) {
    float most = 0;
    bool any = false;
    for_each_stretch(blocks.part, block, [&](std::int64_t at, std::int64_t count) {
      any = true;
      for (std::int64_t i = at; i < at + count; ++i) {
        const float size = __builtin_fabsf(numbers[i]);
        most = size > most ? size : most;
      }
    });
    if (any) scales[block] = most;
  }
}

void encode_blocks(const float* numbers, const float* scales, const float* limits,
                   const BlocksOfPart& blocks, std::uint8_t* codes) {
  for_each_block(blocks, [&](std::int64_t block, std::int64_t at, std::int64_t count) {
    const float scale = scales[block];
    for (std::int64_t i = at; i < at + count; ++i)
      codes[i] = static_cast<std::uint8_t>(code_of(scale > 0 ? numbers[i] / scale : 0, limits));
  });
}

void greater_in_place(float* target, const float* other, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    target[i] = target[i] < other[i] ? other[i] : target[i];
}

namespace {

template <class Out, class X, class Y>
void scaled_sum_of(Out* out, float a, const X* x, float b, const Y* y, std::int64_t n) {
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    store(out + i, a * load(x + i) + b * load(y + i));
}

}  // namespace

void scaled_sum(const TypedArray& out, float a, const TypedArray& x, float b, const TypedArray& y,
                std::int64_t n) {
  by_type(out.type, [&](auto to) {
    by_type(x.type, [&](auto first) {
      by_type(y.type, [&](auto second) {
        scaled_sum_of(static_cast<decltype(to)*>(out.at), a, static_cast<decltype(first)*>(x.at), b,
                      static_cast<decltype(second)*>(y.at), n);
      });
    });
  });
}

void split_weights(const float* weights, bf16* high, bf16* low, std::int64_t n) {
  const SplitWeights split{high, low};
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    split.set(i, weights[i]);
}

void join_weights(const bf16* high, const bf16* low, float* weights, std::int64_t n) {
  const SplitWeights split{const_cast<bf16*>(high), const_cast<bf16*>(low)};
#pragma omp parallel for simd schedule(static) if (n > kAlone)
  for (std::int64_t i = 0; i < n; ++i)
    weights[i] = split.get(i);
}

double sum_squares_chunk(const float* x, std::int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i)
    sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

}  // namespace vfm::ops::VFM_ISA

// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/adamw_kernels.h"
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

}  // namespace vfm::ops::VFM_ISA

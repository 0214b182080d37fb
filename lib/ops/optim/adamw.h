// One step of AdamW over all parameters, in one pass over memory.
//
//   g = gradient_scale * gradient
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   w = w (1 - lr * weight_decay) - lr * (m / c1) / (sqrt(v / c2) + eps),  c_i = 1 - beta_i^step
//   ema = ema_decay ema + (1 - ema_decay) w
// Source: Loshchilov and Hutter, "Decoupled weight decay regularization" (2019), as in PyTorch.
// Every element is computed alone, so the result does not depend on the number of threads. Moments
// may be bf16 (rounded to nearest, ties to even; the step computes with them before rounding): half
// the memory, at a beta2 of at most 0.99, since a moment that changes by less than 2^-9 of itself
// stays what it is. Weights may be split masters (ops/optim/split_master.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace vfm::ops {

/// The arrays of one parameter, `count` elements each, all on one device.
struct AdamwSlot {
  float* value = nullptr;         ///< f32, or null: the weight is split
  std::uint16_t* high = nullptr;  ///< its bf16
  std::uint16_t* low = nullptr;   ///< and the rest
  const float* gradient = nullptr;
  void* first_moment = nullptr;
  void* second_moment = nullptr;
  DType moments = DType::f32;  ///< f32 or bf16: of both
  float* ema = nullptr;        ///< null: no average is kept
  std::int64_t count = 0;
  float weight_decay = 0;
};

struct AdamwStep {
  float learning_rate = 1e-3f;
  float beta1 = 0.9f, beta2 = 0.99f;
  float epsilon = 1e-8f;
  float gradient_scale = 1;  ///< from clipping
  float ema_decay = 0.99f;
  std::int64_t step = 1;  ///< counts from 1
};

void adamw(Device device, std::span<const AdamwSlot> slots, const AdamwStep& step);

/// The same with gradients `factor` * gradient, clipped: their norm over all slots is brought down
/// to `most`, unless that is 0. Returns the norm before clipping; where it is not finite, nothing
/// is changed. step.gradient_scale is not used. On a GPU the host waits once, at the end.
double clipped_adamw(Device device, std::span<const AdamwSlot> slots, const AdamwStep& step,
                     double factor, double most);

/// The same where the slots are only some of those whose norm is clipped: `squares` is the sum of
/// squares of all gradients.
double adamw_of_norm(Device device, std::span<const AdamwSlot> slots, const AdamwStep& step,
                     double factor, double most, double squares);

}  // namespace vfm::ops

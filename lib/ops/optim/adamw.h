// One step of AdamW over all parameters, in one pass over memory.
//
//   g = gradient_scale * gradient
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   w = w (1 - lr * weight_decay) - lr * (m / c1) / (sqrt(v / c2) + eps),  c_i = 1 - beta_i^step
//   ema = ema_decay ema + (1 - ema_decay) w
// Source: Loshchilov and Hutter, "Decoupled weight decay regularization" (2019), as in PyTorch.
// Each element is computed independently, so the result does not depend on the number of threads.
// Weights may be split masters (ops/optim/split_master.h). Moments may be bf16, which halves their
// memory. The step computes with unrounded moments and rounds them to nearest, ties to even. Such
// moments need a beta2 of at most 0.99, as a moment that changes by less than 2^-9 of itself does
// not change when rounded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace vfm::ops {

/// The arrays of one parameter, each of `count` elements, all on one device.
struct AdamwSlot {
  float* value = nullptr;         ///< f32; null if the weight is split
  std::uint16_t* high = nullptr;  ///< bf16 half of a split weight
  std::uint16_t* low = nullptr;   ///< remaining bits of a split weight
  const float* gradient = nullptr;
  void* first_moment = nullptr;
  void* second_moment = nullptr;
  DType moments = DType::f32;  ///< of both moments: f32 or bf16
  float* ema = nullptr;        ///< null if no average is kept
  std::int64_t count = 0;
  float weight_decay = 0;
};

struct AdamwStep {
  float learning_rate = 1e-3f;
  float beta1 = 0.9f, beta2 = 0.99f;
  float epsilon = 1e-8f;
  float gradient_scale = 1;  ///< factor on gradients, such as from clipping
  float ema_decay = 0.99f;
  std::int64_t step = 1;  ///< number of this step, from 1
};

void adamw(Device device, std::span<const AdamwSlot> slots, const AdamwStep& step);

/// adamw() with gradients `factor` * gradient, clipped so that their norm over all slots is at most
/// `most`; 0 for no clipping. Returns the norm before clipping. If the norm is not finite, nothing
/// is changed. step.gradient_scale is ignored. On a GPU the host waits once, at the end.
double clipped_adamw(Device device, std::span<const AdamwSlot> slots, const AdamwStep& step,
                     double factor, double most);

}  // namespace vfm::ops

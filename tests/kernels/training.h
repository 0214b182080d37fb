// A training step of the diffusion transformer on made-up data, on any device: for tests and
// benchmarks that are built without lib/train and its libraries.
//
// The loss is the mean squared error to a fixed target, computed on the host in double; the step
// clips the gradients' norm to 1 and is AdamW's. Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "models/dit.h"
#include "ops/adamw.h"
#include "ops/sum_squares.h"
#include "tensor/device.h"

namespace vfm::test {

/// Normal numbers, a function of the key, on the CPU.
inline Tensor normal(Shape shape, std::uint64_t key) {
  Tensor tensor(std::move(shape));
  Random(1, Purpose::test, 0, key).fill_normal(tensor.floats());
  return tensor;
}

/// What a step learns from.
struct Pack {
  models::DitBatch batch;
  Tensor target;  ///< f32 on the CPU
  std::int64_t tokens = 0, text_tokens = 0;
};

/// All normal numbers, functions of `key`.
inline Pack make_pack(const models::DitConfig& config, std::vector<models::DitSample> samples,
                      std::uint64_t key = 0) {
  Pack pack;
  std::int64_t positions = 0;
  for (const models::DitSample& s : samples) {
    positions += std::int64_t{s.frames} * s.height * s.width;
    pack.text_tokens += s.text_tokens;
    pack.tokens += s.tokens(config);
  }
  pack.batch.samples = std::move(samples);
  pack.batch.latents = normal({positions * config.in_channels}, 4 * key + 1);
  pack.batch.text = normal({pack.text_tokens, config.text_embed_dim}, 4 * key + 2);
  pack.target = normal({positions * config.out_channels}, 4 * key + 3);
  return pack;
}

/// The mean squared error, and its gradient on the output's device.
struct Loss {
  double value = 0;
  Tensor gradient;
};

inline Loss squared_error(const Tensor& output, const Tensor& target) {
  const Tensor host = output.to(Device::cpu), gradient(output.shape());
  const double scale = 1 / static_cast<double>(output.elements());
  double sum = 0;
  for (std::int64_t i = 0; i < output.elements(); ++i) {
    const double difference = double{host.data<float>()[i]} - target.data<float>()[i];
    sum += difference * difference;
    gradient.data<float>()[i] = static_cast<float>(2 * scale * difference);
  }
  return {scale * sum, gradient.to(output.device())};
}

/// What training keeps beside the parameters. The one place to change with nn::Parameter.
class Optimizer {
 public:
  /// `ema`: keep the moving average too.
  Optimizer(const models::Dit& dit, bool ema) : device_(dit.device()) {
    for (const nn::Parameter* p : dit.parameters())
      slots_.push_back(make_slot(*p, ema));
  }
  /// Returns the norm of the gradients before it was clipped.
  double step(const models::Dit& dit) {
    const double norm = std::sqrt(ops::sum_squares(device_, gradients_));
    settings.gradient_scale = static_cast<float>(1 / std::max(1.0, norm));
    ops::adamw(device_, slots_, settings);
    ++settings.step;
    for (nn::Parameter* p : dit.parameters())
      ++p->version;
    return norm;
  }

  ops::AdamwStep settings;

 private:
  ops::AdamwSlot make_slot(const nn::Parameter& p, bool ema) {
    const auto zeros = [&] {
      state_.push_back(Tensor::zeros(p.value.shape(), DType::f32, device_));
      return state_.back().data<float>();
    };
    ops::AdamwSlot slot;
    slot.value = p.value.data<float>();
    slot.gradient = p.grad.data<float>();
    slot.first_moment = zeros();
    slot.second_moment = zeros();
    if (ema) slot.ema = zeros();
    slot.count = p.value.elements();
    slot.weight_decay = p.decay ? 0.01f : 0.f;
    gradients_.push_back({slot.gradient, slot.count});
    return slot;
  }

  Device device_;
  std::vector<Tensor> state_;
  std::vector<ops::AdamwSlot> slots_;
  std::vector<ops::Extent> gradients_;
};

/// Forward, loss and backward into the parameters' gradients; returns the loss.
inline double compute_gradients(const models::Dit& dit, const Pack& pack) {
  nn::zero_gradients(dit.parameters());
  ops::Tape tape;
  const Tensor output = dit.forward(tape, pack.batch);
  const Loss loss = squared_error(output, pack.target);
  tape.backward(output, loss.gradient);
  return loss.value;
}

}  // namespace vfm::test

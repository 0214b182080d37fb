// A training step of a diffusion network on made-up data, on any device: for tests and
// benchmarks that are built without lib/train and its libraries.
//
// The loss is the mean squared error to a target; the step clips the gradients' norm to 1 and is
// AdamW's. Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/dit/network.h"
#include "ops/loss/squared_error.h"
#include "ops/optim/adamw.h"
#include "tensor/device.h"
#include "tensor/graph_cache.h"
#include "tensors.h"

namespace vfm::test {

/// What a step learns from.
struct Pack {
  models::NetworkBatch batch;
  Tensor target;  ///< f32
  std::int64_t tokens = 0, text_tokens = 0;
};

/// All normal numbers, functions of `key`.
inline Pack make_pack(const models::NetworkConfig& config,
                      std::vector<models::NetworkSample> samples, std::uint64_t key = 0) {
  Pack pack;
  std::int64_t positions = 0;
  for (const models::NetworkSample& s : samples) {
    positions += std::int64_t{s.frames} * s.height * s.width;
    pack.text_tokens += s.text_tokens;
    pack.tokens += s.tokens(config);
  }
  pack.batch.samples = std::move(samples);
  pack.batch.latents = noise_tensor({positions * config.in_channels}, 4 * key + 1);
  pack.batch.text = noise_tensor({pack.text_tokens, config.text_embed_dim}, 4 * key + 2);
  pack.target = noise_tensor({positions * config.out_channels}, 4 * key + 3);
  return pack;
}

/// On `device`, so that a step copies nothing.
inline Pack put(Pack pack, Device device) {
  pack.batch.latents = pack.batch.latents.to(device);
  pack.batch.text = pack.batch.text.to(device);
  pack.batch.c_noise = pack.batch.noise_levels(device);
  pack.target = pack.target.to(device);
  return pack;
}

/// The parameters, or those of the adapters where there are some.
inline const nn::ParameterList& trained(const models::DiffusionNetwork& network) {
  return network.adapters().empty() ? network.parameters() : network.adapters();
}

/// What training keeps beside the parameters.
class Optimizer {
 public:
  /// `moments` is f32 or bf16; `ema`: keep the moving average too.
  Optimizer(const models::DiffusionNetwork& network, DType moments, bool ema)
      : device_(network.device()) {
    for (const nn::Parameter* p : trained(network))
      slots_.push_back(make_slot(*p, moments, ema));
  }
  /// Returns the norm of the gradients before it was clipped.
  double step() {
    const double norm = ops::clipped_adamw(device_, slots_, settings, 1, 1);
    ++settings.step;
    return norm;
  }

  ops::AdamwStep settings;

 private:
  ops::AdamwSlot make_slot(const nn::Parameter& p, DType moments, bool ema) {
    const auto zeros = [&](DType dtype) {
      state_.push_back(Tensor::zeros(p.shape(), dtype, device_));
      return state_.back().raw();
    };
    ops::AdamwSlot slot = nn::adamw_slot(p);
    slot.moments = moments;
    slot.first_moment = zeros(moments);
    slot.second_moment = zeros(moments);
    if (ema) slot.ema = static_cast<float*>(zeros(DType::f32));
    slot.weight_decay = p.decay ? 0.01f : 0.f;
    return slot;
  }

  Device device_;
  std::vector<Tensor> state_;
  std::vector<ops::AdamwSlot> slots_;
};

/// Forward, loss and backward into the parameters' gradients. `pack` is on the model's device.
struct Passed {
  double loss = 0;
  Tensor output;
};

/// By `graphs`, if there are any: on a GPU, for packs of one shape, which were put() there. `more`:
/// added to the gradients that are there.
inline Passed compute_gradients(const models::DiffusionNetwork& network, const Pack& pack,
                                GraphCache* graphs = nullptr, bool more = false) {
  const auto work = [&](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
    ops::Tape tape;
    if (!more) tape.replace_gradients();
    models::NetworkBatch batch{pack.batch.samples, inputs[0], inputs[1], inputs[2]};
    const Tensor output = network.forward(tape, batch);
    const ops::ErrorSample all[] = {{output.elements()}};
    const double scale = 1 / static_cast<double>(output.elements());
    const ops::SquaredError error = ops::squared_error(output, inputs[3], all, scale);
    tape.backward(output, error.seed);
    return {output, error.sums};
  };
  const std::vector<Tensor> inputs = {pack.batch.latents, pack.batch.text, pack.batch.c_noise,
                                      pack.target};
  const std::vector<Tensor> results =
      graphs != nullptr ? graphs->run(more ? "more" : "", inputs, work) : work(inputs);
  const ops::SquaredError error{Tensor(), results[1]};
  return {error.read_sums()[0] / static_cast<double>(results[0].elements()), results[0]};
}

}  // namespace vfm::test

// Networks small enough for tests, and a step of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/philox.h"
#include "models/dit/architecture.h"
#include "models/dit/dit.h"
#include "models/dit/network.h"
#include "models/wan/wan.h"
#include "support/golden.h"

namespace vfm {

/// That of tests/golden/dit_tiny.safetensors.
inline models::NetworkConfig tiny_dit() {
  models::NetworkConfig c;
  c.in_channels = 3;
  c.out_channels = 2;
  c.num_attention_heads = 2;
  c.attention_head_dim = 12;
  c.num_layers = 2;
  c.text_embed_dim = 10;
  c.own<models::DitFields>().adaln_lora_dim = 6;
  c.max_size = {4, 8, 12};
  c.own<models::DitFields>().rope_scale = {2.0, 1.0, 3.0};
  return c;
}

/// That of tests/golden/stdit_tiny.safetensors.
inline models::NetworkConfig tiny_stdit() {
  models::NetworkConfig c;
  c.architecture = &models::kStdit;
  c.in_channels = c.out_channels = 2;
  c.num_attention_heads = 2;
  c.attention_head_dim = 12;
  c.num_layers = 1;
  c.mlp_ratio = 2;
  c.text_embed_dim = 6;
  c.own<models::DitFields>().adaln_lora_dim = 4;
  c.max_size = {4, 8, 8};
  c.own<models::DitFields>().rope_scale = {2, 1, 3};
  c.concat_padding_mask = false;
  return c;
}

/// That of tests/golden/wan/t2v.safetensors, with one block more.
inline models::NetworkConfig tiny_wan() {
  models::NetworkConfig c = models::default_config(models::kWan);
  c.in_channels = c.out_channels = 2;
  c.num_attention_heads = 2;
  c.attention_head_dim = 12;
  c.num_layers = 2;
  c.text_embed_dim = 6;
  c.own<models::WanFields>().ffn_dim = 20;
  c.own<models::WanFields>().freq_dim = 8;
  return c;
}

/// With modulation by one matrix.
inline models::NetworkConfig with_full_adaln(models::NetworkConfig c) {
  c.own<models::DitFields>().adaln_lora_dim = 0;
  return c;
}

/// Every number random: the zeros that modulation begins with would hide half of the network.
inline void randomise(const nn::ParameterList& parameters, float scale = 0.2f) {
  for (nn::Parameter* p : parameters) {
    const Tensor values(p->shape());
    Random(2, Purpose::test, 0, random_key(p->name)).fill_normal(values.floats());
    for (float& v : values.floats())
      v = scale * v + (values.dims() == 1 ? 1.f : 0.f);
    p->write(values);
  }
}

inline std::vector<float> output_of(const models::DiffusionNetwork& network,
                                    const models::NetworkBatch& batch) {
  ops::Tape tape(false);
  const Tensor output = network.forward(tape, batch);
  return {output.floats().begin(), output.floats().end()};
}

/// Forward, and backward from `cotangent`; the gradients of `trained` start at zero. The output.
inline std::vector<float> step(const models::DiffusionNetwork& network,
                               const nn::ParameterList& trained, const models::NetworkBatch& batch,
                               const std::vector<float>& cotangent) {
  nn::zero_gradients(trained);
  ops::Tape tape;
  const Tensor output = network.forward(tape, batch);
  tape.backward(output, flat(cotangent).reshape(output.shape()));
  return {output.floats().begin(), output.floats().end()};
}

/// Forward and backward, for what they take and not for their results.
template <class Model, class Batch>
void step_of(const Model& model, const Batch& batch) {
  ops::Tape tape;
  const Tensor output = model.forward(tape, batch);
  tape.backward(output, Tensor::zeros(output.shape(), DType::f32, output.device()));
}

}  // namespace vfm

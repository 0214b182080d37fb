// What the tests of training on the emulated GPU share: a small recipe, made-up data, and a run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tensor/device.h"
#include "train/diffusion/data.h"
#include "train/recipe/recipe_file.h"
#include "train/step/trainer.h"

namespace vfm::train {

inline Recipe small(const std::string& more = "") {
  const auto settings = parse_yaml(
      "model: {num_attention_heads: 2, attention_head_dim: 12, num_layers: 1, adaln_lora_dim: 4, "
      "max_size: [4, 8, 8]}\n"
      "data: {tokens: 12, packs: 2, window: 8}\n"
      "schedule: {warmup: 2}\n"
      "ema: {decay: 0.5}\n"
      "validation: {samples: 2, sigmas: [0.5, 2]}\n" +
          more,
      "a test");
  return make_recipe(settings);
}

inline std::unique_ptr<Dataset> made_up() {
  MadeUpLatents synthetic;
  synthetic.sizes = {{1, 4, 4}, {2, 4, 4}};
  synthetic.channels = 3;
  synthetic.text_tokens = 2;
  synthetic.text_width = 5;
  return make_up_latents(synthetic);
}

struct Side {
  Recipe recipe;
  Trainer trainer;

  Side(const Recipe& fitted, const Dataset& data, dist::World& world, Device device)
      : recipe(fitted), trainer(recipe, data, world, device) {}
  std::vector<Tensor> weights() {
    std::vector<Tensor> values;
    for (const nn::Parameter* parameter : trainer.objective().parameters())
      values.push_back(parameter->read().to(Device::cpu).clone());
    return values;
  }
};

inline bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Tensor x = a[i].to(Device::cpu), y = b[i].to(Device::cpu);
    if (x.bytes() != y.bytes() || std::memcmp(x.raw(), y.raw(), x.bytes()) != 0) return false;
  }
  return a.size() == b.size();
}

}  // namespace vfm::train

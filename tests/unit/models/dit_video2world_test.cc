// The diffusion transformer as a video-to-world model, and with the positions of Cosmos 14B,
// against diffusers' (scripts/golden/dit.py).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "models/dit.h"

using namespace vfm;

namespace {

std::vector<float> golden(const std::string& name) {
  static const io::SafetensorsSet set(VFM_GOLDEN, "dit_v2w");
  const io::TensorView* view = set.find(name);
  INFO(name);
  REQUIRE(view != nullptr);
  std::vector<float> values(static_cast<std::size_t>(view->elements()));
  std::memcpy(values.data(), view->data.data(), view->data.size());
  return values;
}

// Relative to the largest element: what rounding in a sum amounts to.
double distance(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, largest = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(double{a[i]} - b[i]));
    largest = std::max(largest, std::abs(double{b[i]}));
  }
  return difference / largest;
}

void append(std::vector<float>& to, const std::vector<float>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

Tensor flat(const std::vector<float>& values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

models::DitConfig config() {
  models::DitConfig c;
  c.in_channels = 3;  // two of the latent and the mask
  c.out_channels = 2;
  c.num_attention_heads = 2;
  c.attention_head_dim = 12;
  c.num_layers = 1;
  c.mlp_ratio = 2;
  c.text_embed_dim = 6;
  c.adaln_lora_dim = 4;
  c.max_size = {4, 8, 8};
  c.rope_scale = {2, 2, 2};
  c.learnable_positions = false;
  return c;
}

}  // namespace

TEST_CASE("trap 7: the small epsilon of queries and keys; video-to-world with its mask") {
  const models::Dit dit(config(), 1);
  for (nn::Parameter* p : dit.parameters())
    p->write(Tensor::from(golden("weight." + p->name), p->shape()));

  models::DitBatch batch;
  batch.samples = {{3, 4, 6, 30.f, 1.02f, 3}, {4, 2, 4, 24.f, -0.9f, 2}};
  const std::vector<int> conditions = {1, 2};
  std::vector<float> latents, text, expected, cotangent;
  for (std::size_t i = 0; i < 2; ++i) {
    const models::DitSample& s = batch.samples[i];
    const std::string number = std::to_string(i);
    append(latents, golden("input." + number + ".latent"));
    const auto plane = static_cast<std::size_t>(s.height * s.width);
    latents.insert(latents.end(), conditions[i] * plane, 1.0f);
    latents.insert(latents.end(), (s.frames - conditions[i]) * plane, 0.0f);
    append(text, golden("input." + number + ".text"));
    append(expected, golden("output." + number));
    append(cotangent, golden("cotangent." + number));
  }
  batch.latents = flat(latents);
  batch.text = Tensor::from(text, {5, 6});

  ops::Tape tape;
  const Tensor output = dit.forward(tape, batch);
  CHECK(distance(output.floats(), expected) < 1e-5);
  tape.backward(output, flat(cotangent).reshape(output.shape()));
  for (const nn::Parameter* p : dit.parameters()) {
    INFO(p->name);
    CHECK(distance(p->grad.floats(), golden("gradient." + p->name)) < 1e-4);
  }
}

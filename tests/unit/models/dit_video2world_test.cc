// The diffusion transformer as a video-to-world model, and with the positions of Cosmos 14B,
// against diffusers' (scripts/golden/dit.py).
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "models/dit/architecture.h"
#include "models/dit/dit.h"
#include "support/small_networks.h"

using namespace vfm;

namespace {

void append(std::vector<float>& to, const std::vector<float>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

models::NetworkConfig config() {
  models::NetworkConfig c = tiny_stdit();
  c.architecture = &models::kDit;
  c.in_channels = 3;  // two of the latent and the mask
  c.own<models::DitFields>().rope_scale = {2, 2, 2};
  c.concat_padding_mask = true;
  c.own<models::DitFields>().learnable_positions = false;
  return c;
}

}  // namespace

TEST_CASE("trap 7: the small epsilon of queries and keys; video-to-world with its mask") {
  const models::Dit dit(config(), 1);
  const Golden golden("dit_v2w");
  golden.load_weights(dit.parameters());

  models::NetworkBatch batch;
  batch.samples = {{3, 4, 6, 30.f, 1.02f, 3}, {4, 2, 4, 24.f, -0.9f, 2}};
  const std::vector<int> conditions = {1, 2};
  std::vector<float> latents;
  for (std::size_t i = 0; i < 2; ++i) {
    const models::NetworkSample& s = batch.samples[i];
    append(latents, golden["input." + std::to_string(i) + ".latent"]);
    const auto plane = static_cast<std::size_t>(s.height * s.width);
    latents.insert(latents.end(), conditions[i] * plane, 1.0f);
    latents.insert(latents.end(), (s.frames - conditions[i]) * plane, 0.0f);
  }
  batch.latents = flat(latents);
  batch.text = Tensor::from(golden.joined("input", ".text", 2), {5, 6});

  ops::Tape tape;
  const Tensor output = dit.forward(tape, batch);
  CHECK(distance(output.floats(), golden.joined("output", "", 2)) < 1e-5);
  tape.backward(output, flat(golden.joined("cotangent", "", 2)).reshape(output.shape()));
  for (const nn::Parameter* p : dit.parameters()) {
    INFO(p->name);
    CHECK(distance(p->grad.floats(), golden["gradient." + p->name]) < 1e-4);
  }
}

// The network of the Cosmos tokenizers on the GPU, as the emulation runs it, against the CPU:
// latents, pixels, every gradient, and chunks.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "models/cosmos/autoencoder.h"
#include "support/cosmos_drawn.h"
#include "tensor/device.h"
#include "tensors.h"

using namespace vfm;
using namespace vfm::models;
using test::apart;

namespace {

// Some of the channels are such as tensor cores take, some are not.
CosmosConfig tiny(bool attending) {
  CosmosConfig c;
  c.encoder_block_out_channels = {8, 16, 16, 24};
  c.decode_block_out_channels = {12, 16, 16, 24};
  c.num_layers = 1;
  c.latent_channels = c.z_channels = 4;
  if (attending) c.resolution = 64, c.attention_resolutions = {8};
  return c;
}

CosmosAutoencoder filled(const CosmosConfig& config, DType compute, Device device) {
  CosmosAutoencoder model(config, 0, compute, device);
  fill(model);
  return model;
}

Tensor numbers(const std::string& name, const Shape& shape, float factor = 1) {
  return Tensor::from(drawn(name, element_count(shape), factor), shape);
}

}  // namespace

TEST_CASE("latents, pixels and gradients of the GPU are the CPU's") {
  const DType compute = GENERATE(DType::f32, DType::bf16);
  const bool attending = compute == DType::f32;
  CAPTURE(dtype_name(compute));
  const double tolerance = compute == DType::f32 ? 1e-4 : 0.06;
  const CosmosAutoencoder cpu = filled(tiny(attending), compute, Device::cpu);
  const CosmosAutoencoder gpu = filled(tiny(attending), compute, Device::cuda);
  const Tensor pixels = numbers("pixels", {9, 8, 16, 3}, 0.5f);
  const Tensor on_gpu = pixels.to(Device::cuda);
  ops::Tape there, here;
  const Tensor latents = gpu.encode(there, on_gpu), expected = cpu.encode(here, pixels);
  CHECK(apart(latents, expected) < tolerance);
  const Tensor made = gpu.decode(there, latents), shown = cpu.decode(here, expected);
  CHECK(apart(made, shown) < 2 * tolerance);
  const Tensor cotangent = numbers("cotangent", shown.shape());
  there.backward(made, cotangent.to(Device::cuda));
  here.backward(shown, cotangent);
  const auto squared = [](const Tensor& a) {
    double sum = 0;
    for (const float v : a.to(Device::cpu).floats())
      sum += double{v} * v;
    return sum;
  };
  double all = 0, wrong = 0;
  for (const nn::Parameter* p : cpu.parameters())
    all += squared(p->grad);
  for (std::size_t i = 0; i < cpu.parameters().size(); ++i) {
    INFO(cpu.parameters()[i]->name);
    const Tensor expected_gradient = cpu.parameters()[i]->grad;
    const Tensor off = gpu.parameters()[i]->grad.to(Device::cpu).clone();
    for (std::size_t k = 0; k < off.floats().size(); ++k)
      off.floats()[k] -= expected_gradient.floats()[k];
    wrong += squared(off);
    // Some gradients are little more than the rounding of large ones.
    if (compute == DType::f32)
      CHECK(squared(off) < 1e-6 * squared(expected_gradient) + 1e-10 * all);
  }
  CHECK(wrong < (compute == DType::f32 ? 1e-8 : 4e-3) * all);
}

TEST_CASE("chunks give the same bits on the GPU") {
  const CosmosAutoencoder model = filled(tiny(false), DType::bf16, Device::cuda);
  ops::Tape silent(false);
  const Tensor pixels = numbers("pixels", {9, 8, 8, 3}, 0.5f).to(Device::cuda);
  const Tensor latents = model.encode(silent, pixels), frames = model.decode(silent, latents);
  auto encoding = model.encode_stream(), decoding = model.decode_stream();
  for (std::int64_t at = 0; at < 2; ++at) {
    const std::int64_t from = at == 0 ? 0 : 8 * at - 7, to = 8 * at + 1;
    CHECK(apart(encoding.push(pixels.rows(from, to)), latents.rows(at, at + 1)) == 0);
    CHECK(apart(decoding.push(latents.rows(at, at + 1)), frames.rows(from, to)) == 0);
  }
}

// The diffusion transformer on the GPU, as the emulation runs it, against the CPU: output and every
// gradient, packs of images and videos, text of several lengths.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include "base/philox.h"
#include "models/dit.h"
#include "ops/adamw.h"
#include "ops/attention.h"
#include "ops/attention_choice.h"
#include "ops/sum_squares.h"
#include "tensor/device.h"

using namespace vfm;

namespace {

models::DitConfig tiny() {
  models::DitConfig config;
  config.in_channels = config.out_channels = 4;
  config.num_attention_heads = 2;
  config.attention_head_dim = 16;
  config.num_layers = 2;
  config.text_embed_dim = 8;
  config.adaln_lora_dim = 4;
  config.max_size = {4, 8, 8};
  config.patch_size = {1, 2, 2};
  return config;
}

Tensor noise(Shape shape, std::uint64_t key) {
  const Tensor tensor(std::move(shape));
  Random(1, Purpose::test, 0, key).fill_normal(tensor.floats());
  return tensor;
}

models::DitBatch pack(const models::DitConfig& config) {
  models::DitBatch batch;
  batch.samples = {{2, 4, 6, 8.f, 0.3f, 3}, {1, 8, 4, 0.f, -0.5f, 1}, {3, 2, 2, 12.f, 1.f, 5}};
  std::int64_t positions = 0, text = 0;
  for (const models::DitSample& s : batch.samples) {
    positions += std::int64_t{s.frames} * s.height * s.width;
    text += s.text_tokens;
  }
  batch.latents = noise({positions * config.in_channels}, 1);
  batch.text = noise({text, config.text_embed_dim}, 2);
  return batch;
}

// The largest difference, as a part of the largest value.
double apart(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(Device::cpu), y = b.to(Device::cpu);
  double worst = 0, largest = 1e-6;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const double p = x.floats()[static_cast<std::size_t>(i)];
    const double q = y.floats()[static_cast<std::size_t>(i)];
    if (!std::isfinite(p) || !std::isfinite(q)) return 1e30;
    worst = std::max(worst, std::abs(p - q));
    largest = std::max(largest, std::abs(q));
  }
  return worst / largest;
}

// Weights that begin at zero would hide what stands behind them.
void stir(const models::Dit& dit) {
  std::uint64_t key = 10;
  for (nn::Parameter* parameter : dit.parameters()) {
    Tensor values = noise(parameter->shape(), ++key);
    for (float& v : values.floats())
      v *= 0.2f;
    parameter->write(values);
  }
}

void compare(const models::DitConfig& config, DType compute, models::Recompute recompute,
             double tolerance) {
  models::Dit cpu(config, 1, compute), gpu(config, 1, compute, Device::cuda);
  const models::DitBatch batch = pack(config);
  std::vector<Tensor> outputs;
  for (models::Dit* dit : {&cpu, &gpu}) {
    stir(*dit);
    dit->set_recompute(recompute);
    nn::zero_gradients(dit->parameters());
    ops::Tape tape;
    const Tensor output = dit->forward(tape, batch);
    CHECK(output.device() == dit->device());
    outputs.push_back(output);
    tape.backward(output, noise(output.shape(), 5).to(dit->device()));
  }
  CHECK(apart(outputs[1], outputs[0]) < tolerance);
  for (std::size_t i = 0; i < cpu.parameters().size(); ++i) {
    INFO(cpu.parameters()[i]->name);
    CHECK(apart(gpu.parameters()[i]->grad, cpu.parameters()[i]->grad) < tolerance);
  }
}

}  // namespace

TEST_CASE("the model on the GPU gives the CPU's output and gradients, f32") {
  REQUIRE(why_no_gpu().empty());
  compare(tiny(), DType::f32, models::Recompute::none, 2e-5);
}

TEST_CASE("the same with recomputed blocks") {
  compare(tiny(), DType::f32, models::Recompute::block, 2e-5);
}

TEST_CASE("the same in bf16, to its rounding") {
  compare(tiny(), DType::bf16, models::Recompute::elementwise, 4e-2);
}

TEST_CASE("the same in bf16 with a head dimension that tensor cores take") {
  models::DitConfig config = tiny();
  config.num_attention_heads = 1;
  config.attention_head_dim = 64;
  config.num_layers = 1;
  compare(config, DType::bf16, models::Recompute::elementwise, 4e-2);
}

// Where rounding differs, a number of 8 bits near a border falls to the other side.
TEST_CASE("inference in FP8 on the GPU gives the CPU's output") {
  models::DitConfig config = tiny();
  config.num_attention_heads = 1;
  config.attention_head_dim = 64;
  config.text_embed_dim = 16;
  config.num_layers = 1;
  models::Dit cpu(config, 1, DType::bf16), gpu(config, 1, DType::bf16, Device::cuda);
  const models::DitBatch batch = pack(config);
  std::vector<Tensor> outputs, plain;
  for (models::Dit* dit : {&cpu, &gpu}) {
    stir(*dit);
    ops::Tape tape(false);
    plain.push_back(dit->forward(tape, batch));
    dit->set_inference_fp8({true, true});
    outputs.push_back(dit->forward(tape, batch));
  }
  const double noise = apart(outputs[0], plain[0]), difference = apart(outputs[1], outputs[0]);
  INFO("FP8 changes " << noise << ", the device " << difference);
  CHECK(noise > 1e-2);
  CHECK(difference < noise / 3);
}

TEST_CASE("a build without cuDNN says so to who asks for it by name") {
  ops::Tape silent(false);
  const Tensor qkv = noise({5, 192}, 1).to(DType::bf16).to(Device::cuda);
  ops::set_attention_body(ops::AttentionBody::cudnn);
  CHECK_THROWS_WITH(ops::self_attention(silent, qkv, {{5}, {5}, 1, 1, 64, false}),
                    Catch::Contains("vfm was built without cuDNN"));
  ops::set_attention_body(ops::AttentionBody::automatic);
  CHECK(ops::self_attention(silent, qkv, {{5}, {5}, 1, 1, 64, false}).size(1) == 64);
}

TEST_CASE("AdamW and the norm of the gradients are those of the CPU") {
  std::vector<Tensor> kept[2];
  double sums[2];
  for (const Device device : {Device::cpu, Device::cuda}) {
    const auto at = static_cast<std::size_t>(device == Device::cuda);
    std::vector<ops::AdamwSlot> slots;
    std::vector<ops::Extent> gradients;
    for (const std::int64_t count : {1, 17, 9000}) {
      const auto make = [&](std::uint64_t key) {
        kept[at].push_back(noise({count}, key).to(device));
        return kept[at].back().data<float>();
      };
      float *value = make(1), *gradient = make(2), *m = make(3), *ema = make(4);
      kept[at].push_back(Tensor::zeros({count}, DType::f32, device));
      ops::AdamwSlot slot;
      slot.value = value, slot.gradient = gradient, slot.ema = ema;
      slot.first_moment = m, slot.second_moment = kept[at].back().raw();
      slot.count = count, slot.weight_decay = 0.1f;
      slots.push_back(slot);
      gradients.push_back({gradient, count});
    }
    sums[at] = ops::sum_squares(device, gradients);
    ops::AdamwStep step;
    step.gradient_scale = 0.5f;
    ops::adamw(device, slots, step);
  }
  CHECK(sums[1] == Approx(sums[0]).epsilon(1e-12));
  for (std::size_t i = 0; i < kept[0].size(); ++i)
    CHECK(apart(kept[1][i], kept[0][i]) < 1e-6);
}

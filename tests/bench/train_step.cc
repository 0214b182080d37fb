// The time of a training step (forward, loss gradient, backward, clipping norm, AdamW with EMA) of
// a DiT on the CPU. train_step.sh runs it beside the same model in PyTorch.
//   train_step quick|100m f32|bf16 [STEPS]
// Prints one line: model, dtype, parameters, tokens, best and median milliseconds, processor time a
// step over all threads, tokens/s.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "base/philox.h"
#include "models/dit.h"
#include "ops/adamw.h"
#include "ops/sum_squares.h"

using namespace vfm;

namespace {

struct Case {
  models::DitConfig config;
  models::DitBatch batch;
};

// The model of scripts/quickstart: sixteen samples of 48 tokens, five text tokens each.
Case quick() {
  Case c;
  c.config.in_channels = c.config.out_channels = 24;
  c.config.num_attention_heads = 6;
  c.config.attention_head_dim = 32;
  c.config.num_layers = 6;
  c.config.text_embed_dim = 64;
  c.config.adaln_lora_dim = 32;
  c.config.max_size = {16, 32, 32};
  c.config.patch_size = {1, 2, 2};
  c.config.concat_padding_mask = false;
  for (int i = 0; i < 16; ++i)
    c.batch.samples.push_back({3, 8, 8, 8.f, 0.05f * i, 5});
  return c;
}

// A hundred million parameters, one sample of 2,048 tokens, 128 text tokens.
Case hundred() {
  Case c;
  c.config.num_attention_heads = 12;
  c.config.attention_head_dim = 64;
  c.config.num_layers = 8;
  c.batch.samples = {{8, 32, 32, 24.f, 0.1f, 128}};
  return c;
}

Tensor noise(Shape shape, std::uint64_t key) {
  Tensor tensor(std::move(shape));
  Random(1, Purpose::test, 0, key).fill_normal(tensor.floats());
  return tensor;
}

// Moments and average beside the parameters, as training keeps them.
struct Optimizer {
  explicit Optimizer(const models::Dit& dit) {
    for (const nn::Parameter* p : dit.parameters()) {
      for (int i = 0; i < 3; ++i)
        state.push_back(Tensor::zeros(p->shape()));
      const std::size_t at = state.size() - 3;
      ops::AdamwSlot slot;
      if (p->split()) {
        slot.high = p->high.data<std::uint16_t>();
        slot.low = p->low.data<std::uint16_t>();
      } else {
        slot.value = p->value.data<float>();
      }
      slot.gradient = p->grad.data<float>();
      slot.first_moment = state[at].raw();
      slot.second_moment = state[at + 1].raw();
      slot.ema = state[at + 2].data<float>();
      slot.count = p->elements();
      slot.weight_decay = p->decay ? 0.01f : 0.f;
      slots.push_back(slot);
      gradients.push_back({p->grad.data<float>(), p->grad.elements()});
    }
  }
  void step() {
    const double norm = std::sqrt(ops::sum_squares(Device::cpu, gradients));
    settings.gradient_scale = static_cast<float>(1 / std::max(1.0, norm));
    ops::adamw(Device::cpu, slots, settings);
    ++settings.step;
  }
  std::vector<Tensor> state;
  std::vector<ops::AdamwSlot> slots;
  std::vector<ops::Extent> gradients;
  ops::AdamwStep settings;
};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// F minus a target, scaled: the gradient of the mean squared error.
Tensor loss_gradient(const Tensor& output, const Tensor& target) {
  Tensor gradient(output.shape());
  const float scale = 2.f / static_cast<float>(output.elements());
  for (std::int64_t i = 0; i < output.elements(); ++i)
    gradient.data<float>()[i] = scale * (output.data<float>()[i] - target.data<float>()[i]);
  return gradient;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "quick", dtype = argc > 2 ? argv[2] : "f32";
  const int steps = argc > 3 ? std::atoi(argv[3]) : 10;
  Case c = which == "100m" ? hundred() : quick();
  std::int64_t positions = 0, text = 0, tokens = 0;
  for (const models::DitSample& s : c.batch.samples) {
    positions += std::int64_t{s.frames} * s.height * s.width;
    text += s.text_tokens;
    tokens += s.tokens(c.config);
  }
  c.batch.latents = noise({positions * c.config.in_channels}, 1);
  c.batch.text = noise({text, c.config.text_embed_dim}, 2);
  const Tensor target = noise({positions * c.config.out_channels}, 3);
  const models::Dit dit(c.config, 1, dtype == "bf16" ? DType::bf16 : DType::f32);
  Optimizer optimizer(dit);
  std::vector<double> times;
  std::int64_t parameters = 0;
  double cpu = 0;
  for (const nn::Parameter* p : dit.parameters())
    parameters += p->elements();
  for (int i = 0; i < steps + 2; ++i) {  // two to warm up
    const double start = seconds();
    const std::clock_t busy = std::clock();
    nn::zero_gradients(dit.parameters());
    ops::Tape tape;
    const Tensor output = dit.forward(tape, c.batch);
    const double forward = seconds();
    tape.backward(output, loss_gradient(output, target));
    const double backward = seconds();
    optimizer.step();
    const double end = seconds();
    if (i < 2) continue;
    times.push_back(end - start);
    cpu += static_cast<double>(std::clock() - busy) / CLOCKS_PER_SEC / steps;
    if (argc > 4)
      fmt::print(stderr, "forward {:.2f} backward {:.2f} optimizer {:.2f} ms\n",
                 1e3 * (forward - start), 1e3 * (backward - forward), 1e3 * (end - backward));
  }
  std::ranges::sort(times);
  const double median = times[times.size() / 2];
  fmt::print(
      "vfm {} {} parameters {} tokens {} best {:.2f} ms median {:.2f} ms cpu {:.2f} ms tokens/s "
      "{:.0f}\n",
      which, dtype, parameters, tokens, 1e3 * times.front(), 1e3 * median, 1e3 * cpu,
      static_cast<double>(tokens) / median);
}

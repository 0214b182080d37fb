// The autoregressive decoder on the GPU against the CPU.
// SPDX-License-Identifier: Apache-2.0
#include "models/decoder/decoder.h"

#include <cmath>
#include <exception>

#include "kernel_test.h"
#include "ops/loss/cross_entropy.h"
#include "tensor/device.h"
#include "tensors.h"

using namespace vfm;
using test::apart;
using test::Checker;

namespace {

// The autoregressive decoder: logits, losses, every gradient, and codes one after the other.
void compare_decoders(Checker& checker, DType compute, double tolerance) {
  models::DecoderConfig config;
  config.vocabulary = 37;
  config.num_attention_heads = 2, config.num_key_value_heads = 1, config.attention_head_dim = 16;
  config.num_layers = 2, config.mlp_ratio = 2, config.text_embed_dim = 8;
  models::CodeBatch batch;
  batch.samples = {{2, 2, 3, 3}, {1, 3, 3, 1}};
  for (int i = 0; i < 21; ++i)
    batch.codes.push_back(i * i % 37);
  batch.text = noise_tensor({4, 8}, 3);
  const std::string name = std::string("decoder ") + (compute == DType::f32 ? "f32" : "bf16");
  std::vector<Tensor> logits, steps, gradients[2];
  std::vector<double> losses;
  std::vector<std::string> names;
  for (const Device device : {Device::cpu, Device::cuda}) {
    models::CausalDecoder decoder(config, 1, compute, device);
    decoder.set_recompute(nn::Recompute::elementwise);
    nn::zero_gradients(decoder.parameters());
    ops::Tape tape;
    const Tensor output = decoder.forward(tape, batch);
    logits.push_back(output.clone());
    const ops::CrossEntropy loss = ops::cross_entropy(output, batch.codes, 1e-2, 1);
    losses.push_back(loss.read_sums(std::vector<std::int64_t>{12, 9})[1]);
    tape.backward(output, loss.seed);
    for (const nn::Parameter* p : decoder.parameters())
      gradients[device == Device::cuda].push_back(p->grad);
    models::CodeWriter writer(decoder, batch.samples[0], batch.text.rows(0, 3));
    for (int i = 0; i < 3; ++i) {
      const std::vector<float> next = writer.logits();
      steps.push_back(Tensor::from(next, {1, 37}));
      writer.write(batch.codes[static_cast<std::size_t>(i)]);
    }
    names.clear();
    for (const nn::Parameter* p : decoder.parameters())
      names.push_back(p->name);
  }
  checker.apart(name + ": logits", apart(logits[1], logits[0]), tolerance);
  checker.apart(name + ": loss", std::abs(losses[1] / losses[0] - 1), tolerance);
  for (std::size_t i = 0; i < 3; ++i)
    checker.apart(name + ": written", apart(steps[3 + i], steps[i]), tolerance);
  for (std::size_t i = 0; i < gradients[0].size(); ++i)
    checker.apart(name + ": gradient of " + names[i], apart(gradients[1][i], gradients[0][i]),
                  tolerance);
}

void tests(Checker& checker) {
  checker.part(compare_decoders, DType::f32, 2e-5);
  checker.part(compare_decoders, DType::bf16, 4e-2);
}

}  // namespace

int main() {
  return vfm::test::run(tests);
}

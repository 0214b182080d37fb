// What a step of training does beside the network: the optimizer, the noise and the copies of its
// data, on the GPU against the CPU. Built twice: with the library for a real GPU, and for the
// emulation.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <exception>

#include "base/philox.h"
#include "kernel_test.h"
#include "ops/loss/noisy_pair.h"
#include "ops/loss/squared_error.h"
#include "ops/optim/adamw.h"
#include "ops/optim/sums.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/add.h"
#include "tensor/device.h"
#include "tensor/upload.h"
#include "tensors.h"

using namespace vfm;
using vfm::test::apart;
using vfm::test::Checker;

namespace {

void check_optimizer(Checker& checker) {
  std::vector<Tensor> kept[2];
  double sums[2], norms[2];
  for (const Device device : {Device::cpu, Device::cuda}) {
    const auto at = static_cast<std::size_t>(device == Device::cuda);
    std::vector<ops::AdamwSlot> slots;
    std::vector<ops::Extent> gradients;
    for (const std::int64_t count : {1, 17, 9000}) {
      const auto make = [&](std::uint64_t key) {
        kept[at].push_back(noise_tensor({count}, key).to(device));
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
    ++step.step;
    norms[at] = ops::clipped_adamw(device, slots, step, 0.1, 1);
    checker.check("a step whose norm is not finite is left out",
                  std::isinf(ops::clipped_adamw(device, slots, step, HUGE_VAL, 1)));
  }
  checker.apart("sum of squares", std::abs(sums[1] / sums[0] - 1), 1e-12);
  checker.check("what is clipped", norms[0] > 1);
  checker.apart("norm", std::abs(norms[1] / norms[0] - 1), 1e-12);
  for (std::size_t i = 0; i < kept[0].size(); ++i)
    checker.apart("AdamW " + std::to_string(i), apart(kept[1][i], kept[0][i]), 1e-6);
}

void check_noise(Checker& checker) {
  std::vector<ops::NoisySample> samples;
  std::int64_t total = 0;
  for (const std::int64_t count : {5000, 3, 1, 4096, 77}) {
    const auto key = static_cast<std::uint64_t>(count);
    samples.push_back({count, 0.7f, 0.3f, 1.5f, 0.2f, Random(9, Purpose::noise, 4, key)});
    total += count;
  }
  const Tensor x0 = noise_tensor({total}, 8);
  const ops::NoisyPair cpu = ops::noisy_pair(x0, samples);
  const ops::NoisyPair gpu = ops::noisy_pair(x0.to(Device::cuda), samples);
  checker.apart("noisy latents", apart(gpu.latents, cpu.latents), 1e-6);
  checker.apart("targets", apart(gpu.target, cpu.target), 1e-6);
}

// Samples of a video-to-world model: channels with given frames in front, and a mark behind.
void check_given(Checker& checker) {
  std::vector<ops::NoisySample> noisy;
  std::vector<ops::ErrorSample> lost;
  std::int64_t total = 0;
  for (const auto& [channels, channel, given] : std::vector<std::array<std::int64_t, 3>>{
           {3, 1500, 500}, {2, 7, 3}, {1, 5, 0}, {16, 36, 12}, {2, 5000, 4999}, {3, 1, 0}}) {
    ops::NoisySample sample{channels * channel, 0.7f, 0.3f, 1.5f, 0.2f};
    sample.noise = Random(9, Purpose::noise, 5, static_cast<std::uint64_t>(channel));
    sample.channel = channel, sample.given = given;
    sample.given_in = 1.9f, sample.given_noise = 0.01f;
    noisy.push_back(sample);
    lost.push_back({sample.count, channel, given});
    total += sample.count;
  }
  const Tensor x0 = noise_tensor({total}, 8);
  const ops::NoisyPair cpu = ops::noisy_pair(x0, noisy);
  const ops::NoisyPair gpu = ops::noisy_pair(x0.to(Device::cuda), noisy);
  checker.apart("latents with given frames", apart(gpu.latents, cpu.latents), 1e-6);
  checker.apart("targets beside given frames", apart(gpu.target, cpu.target), 1e-6);
  const ops::SquaredError here = ops::squared_error(x0, cpu.target, lost, 0.5);
  const ops::SquaredError there =
      ops::squared_error(x0.to(Device::cuda), cpu.target.to(Device::cuda), lost, 0.5);
  checker.apart("gradient beside given frames", apart(there.seed, here.seed), 1e-6);
  const std::vector<double> a = here.read_sums(), b = there.read_sums();
  for (std::size_t i = 0; i < a.size(); ++i)
    checker.check("loss beside given frames " + std::to_string(i),
                  std::abs(a[i] - b[i]) <= 1e-9 * a[i]);
}

// Copies beside kernels that are queued before and after: what is computed reads what was copied,
// though the host writes over it at once and the next copy takes the same memory.
void check_uploads(Checker& checker) {
  const std::int64_t size = test::small() ? 1000 : std::int64_t{5} << 20;
  ops::Tape silent(false);
  Tensor busy = noise_tensor({8 * size}, 1).to(Device::cuda);
  std::vector<Tensor> results, expected;
  for (std::uint64_t i = 0; i < 12; ++i) {
    for (int kernels = 0; kernels < (test::small() ? 1 : 20); ++kernels)
      busy = ops::activate(silent, busy, ops::ActivationKind::gelu);
    const Tensor host = noise_tensor({1, size + static_cast<std::int64_t>(i % 3)}, i + 2);
    expected.push_back(ops::add(silent, host, host));
    Upload upload;
    const Tensor there = upload.copy(host);
    std::ranges::fill(host.floats(), -1.f);
    upload.await();
    results.push_back(ops::add(silent, there, there));
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    checker.check("what was uploaded, number " + std::to_string(i),
                  apart(results[i], expected[i]) == 0);
}

void tests(Checker& checker) {
  for (const auto& part : {check_optimizer, check_noise, check_given, check_uploads})
    checker.part(part);
}

}  // namespace

int main() {
  return vfm::test::run(tests);
}

// The time of one forward pass of a DiT for inference, on the CPU. dit_forward.sh runs it beside
// diffusers' module.
//
//   dit_forward 100m|7b-slice [f32|bf16 [RUNS]]
// Prints one line: model, dtype, parameters, tokens, best and median milliseconds, peak memory.
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "base/error.h"
#include "training.h"

using namespace vfm;

namespace {

struct Case {
  models::NetworkConfig config;
  models::NetworkSample sample;
};

// A hundred million parameters on 2,048 tokens; two layers of the 7B model on 2,048, so wide that
// the matrices are most of it. 128 and 512 text tokens.
Case find_case(const std::string& name) {
  Case c;
  if (name == "100m") {
    c.config.num_attention_heads = 12;
    c.config.attention_head_dim = 64;
    c.config.num_layers = 8;
    c.sample = {8, 32, 32, 24.f, 0.1f, 128};
  } else if (name == "7b-slice") {
    c.config.num_layers = 2;
    c.sample = {8, 32, 32, 24.f, 0.1f, 512};
  } else {
    fail_usage("there is no model '{}'; there are 100m and 7b-slice", name);
  }
  return c;
}

void measure(const std::string& name, DType compute, int runs) {
  const Case c = find_case(name);
  const test::Pack pack = test::make_pack(c.config, {c.sample});
  const auto network = models::make_network(c.config, 1, compute, Device::cpu, false);
  std::int64_t parameters = 0;
  std::uint64_t key = 100;
  for (nn::Parameter* p : network->parameters()) {
    Tensor values = noise_tensor(p->shape(), ++key);
    for (float& value : values.floats())
      value *= 0.02f;
    p->write(values);
    parameters += p->elements();
  }
  std::vector<double> times;
  for (int i = 0; i < runs + 1; ++i) {
    const auto start = std::chrono::steady_clock::now();
    ops::Tape tape(false);
    network->forward(tape, pack.batch);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (i > 0) times.push_back(taken.count());  // the first one warms up
  }
  std::ranges::sort(times);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double median = times[times.size() / 2];
  std::printf(
      "vfm %s %s parameters %lld tokens %lld best %.1f ms median %.1f ms peak %.2f GiB tokens/s "
      "%.0f\n",
      name.c_str(), compute == DType::bf16 ? "bf16" : "f32", static_cast<long long>(parameters),
      static_cast<long long>(pack.tokens), 1e3 * times.front(), 1e3 * median,
      static_cast<double>(usage.ru_maxrss) / (1 << 20), static_cast<double>(pack.tokens) / median);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string name = argc > 1 ? argv[1] : "100m";
    const bool bf16 = argc > 2 && std::string(argv[2]) == "bf16";
    measure(name, bf16 ? DType::bf16 : DType::f32, argc > 3 ? std::max(1, std::atoi(argv[3])) : 5);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dit_forward: %s\n", error.what());
    return 1;
  }
}

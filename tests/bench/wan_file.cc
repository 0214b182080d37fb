// The time of one forward pass of Wan's transformer from a file, on the CPU; wan_sdcpp.sh compares
// it with stable-diffusion.cpp, whose program makes the same input.
//
//   wan_file FILE f32|bf16 [RUNS [OUTPUT]]
// Prints one line: type, tokens, best and median milliseconds, peak memory. Writes the pass's
// result to OUTPUT as raw f32.
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include "models/folder/load_tensors.h"
#include "models/folder/model_config.h"
#include "models/folder/model_folder.h"
#include "tensor/device.h"

using namespace vfm;

namespace {

Tensor wave(std::int64_t count, double step, Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(step * static_cast<double>(i)));
  return Tensor::from(values, std::move(shape));
}

int bench(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s FILE f32|bf16 [RUNS [OUTPUT]]\n", argv[0]);
    return 2;
  }
  const std::string dtype = argv[2];
  const int runs = argc > 3 ? std::atoi(argv[3]) : 2;
  const models::ModelFolder folder(argv[1]);
  const auto config = std::get<models::NetworkConfig>(models::read_model_config(folder));
  const auto network = models::make_network(
      config, 0, dtype == "bf16" ? DType::bf16 : DType::f32, Device::cpu, false);
  models::load_parameters(folder.weights(), network->parameters());
  models::NetworkBatch batch;
  batch.samples = {{5, 30, 52, 16.f, 500.f, 512}};
  const std::int64_t positions = 5 * 30 * 52, text = 512;
  batch.latents = wave(positions * config.in_channels, 0.37, {positions * config.in_channels});
  batch.text = wave(text * config.text_embed_dim, 0.11, {text, config.text_embed_dim});
  std::vector<double> times;
  for (int i = 0; i <= runs; ++i) {  // the first warms up
    const auto start = std::chrono::steady_clock::now();
    ops::Tape tape(false);
    const Tensor out = network->forward(tape, batch);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    if (i > 0 || runs == 0) times.push_back(time.count());
    if (argc > 4)
      std::ofstream(argv[4], std::ios::binary)
          .write(reinterpret_cast<const char*>(out.raw()),
                 static_cast<std::streamsize>(out.bytes()));
  }
  std::ranges::sort(times);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("vfm %s tokens %lld best %.1f ms median %.1f ms peak %.2f GiB\n", dtype.c_str(),
              static_cast<long long>(batch.samples[0].tokens(config)), 1e3 * times.front(),
              1e3 * times[times.size() / 2], static_cast<double>(usage.ru_maxrss) / (1 << 20));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return bench(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "wan_file: %s\n", error.what());
    return 1;
  }
}

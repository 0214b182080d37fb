// The time and the memory that a Cosmos tokenizer of the published size takes to encode and decode
// a video, chunk by chunk. cosmos_tokenizer.sh runs it beside diffusers' module in PyTorch.
//
//   cosmos_tokenizer FRAMES HEIGHT WIDTH [f32|bf16 [ROUNDS [LATENT_FRAMES_OF_A_CHUNK]]]
// Prints one line: vfm, size, dtype, best milliseconds to encode, to decode, processor seconds of
// all rounds, peak resident MiB, videos a second (both ways).
//   cosmos_tokenizer FRAMES HEIGHT WIDTH apart
// Prints how far bf16 is from f32: the latents of the video, and the frames of these latents, each
// as 10 log10 of variance over mean square of the difference.
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <string>
#include <vector>

#include "base/philox.h"
#include "cli/waiting.h"
#include "models/cosmos/autoencoder.h"

using namespace vfm;

namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Times {
  double encode = 1e30, decode = 1e30;
};

Times run(const models::CosmosAutoencoder& model, const Tensor& pixels, std::int64_t chunk) {
  const std::int64_t time = model.config().temporal_compression_ratio;
  const std::int64_t total = 1 + (pixels.size(0) - 1) / time;
  std::vector<Tensor> latents;
  const double start = seconds();
  {
    auto stream = model.encode_stream();
    for (std::int64_t at = 0; at < total; at += chunk) {
      const std::int64_t end = std::min(total, at + chunk);
      latents.push_back(
          stream.push(pixels.rows(at == 0 ? 0 : 1 + (at - 1) * time, 1 + (end - 1) * time)));
    }
  }
  const double middle = seconds();
  auto stream = model.decode_stream();
  for (const Tensor& latent : latents)
    stream.push(latent);
  return {middle - start, seconds() - middle};
}

/// Random weights, of the size that keeps numbers about as large as they are.
models::CosmosAutoencoder filled(DType compute) {
  models::CosmosAutoencoder model(models::CosmosConfig{}, 0, compute, Device::cpu, false);
  for (nn::Parameter* p : model.parameters()) {
    const Tensor values(p->shape());
    Random(0, Purpose::test, 0, random_key(p->name)).fill_uniform(values.floats());
    const float scale =
        p->shape().size() > 1
            ? std::sqrt(static_cast<float>(p->shape()[0]) / static_cast<float>(p->elements()))
            : 0.02f;
    const float add = p->name.ends_with("norm.weight") ? 1.f : 0.f;
    for (float& v : values.floats())
      v = (2 * v - 1) * scale + add;
    p->write(values);
  }
  return model;
}

double decibels(const Tensor& exact, const Tensor& other) {
  const std::span<const float> a = exact.floats(), b = other.floats();
  double sum = 0, squares = 0, difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += a[i];
    squares += double{a[i]} * a[i];
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  }
  const double count = static_cast<double>(a.size());
  return 10 * std::log10((squares - sum * sum / count) / difference);
}

void print_apart(const Tensor& pixels) {
  ops::Tape silent(false);
  const models::CosmosAutoencoder exact = filled(DType::f32), low = filled(DType::bf16);
  const Tensor latents = exact.encode(silent, pixels);
  const double encoded = decibels(latents, low.encode(silent, pixels));
  const double decoded = decibels(exact.decode(silent, latents), low.decode(silent, latents));
  std::printf("bf16 beside f32: latents %.1f dB, frames %.1f dB\n", encoded, decoded);
}

int bench(int argc, char** argv) {
  cli::wait_politely();  // as the programs do
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s FRAMES HEIGHT WIDTH [f32|bf16|apart [ROUNDS [CHUNK]]]\n",
                 argv[0]);
    return 2;
  }
  const std::int64_t frames = std::atoi(argv[1]), height = std::atoi(argv[2]),
                     width = std::atoi(argv[3]);
  const std::string dtype = argc > 4 ? argv[4] : "f32";
  const int rounds = argc > 5 ? std::atoi(argv[5]) : 2;
  const std::int64_t chunk = argc > 6 ? std::atoi(argv[6]) : 1;
  const Tensor pixels({frames, height, width, 3});
  Random(0, Purpose::test).fill_uniform(pixels.floats());
  if (dtype == "apart") return print_apart(pixels), 0;
  const models::CosmosAutoencoder model = filled(dtype == "bf16" ? DType::bf16 : DType::f32);
  Times best;
  std::clock_t processor = 0;
  for (int i = 0; i <= rounds; ++i) {  // the first is not counted
    const std::clock_t before = std::clock();
    const Times times = run(model, pixels, chunk);
    if (i == 0) continue;
    processor += std::clock() - before;
    best.encode = std::min(best.encode, times.encode);
    best.decode = std::min(best.decode, times.decode);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("vfm %dx%dx%d %s encode %.0f ms decode %.0f ms cpu %.1f s peak %.0f MiB %.4f\n",
              static_cast<int>(frames), static_cast<int>(height), static_cast<int>(width),
              dtype.c_str(), 1e3 * best.encode, 1e3 * best.decode,
              static_cast<double>(processor) / CLOCKS_PER_SEC,
              static_cast<double>(usage.ru_maxrss) / 1024, 1 / (best.encode + best.decode));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return bench(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

// The wavelet tokenizer on the GPU, as the emulation runs it, against the CPU: the same bits.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "base/philox.h"
#include "models/wavelet/wavelet.h"
#include "support/noise.h"
#include "tensor/device.h"
#include "tensor/meta.h"

using namespace vfm;
using models::WaveletTokenizer;

namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Case {
  int channels, time, space, frames, height, width;
  std::int64_t gpu_pixels;
};

}  // namespace

TEST_CASE("latents and pixels of the GPU are those of the CPU, bit for bit") {
  const Case c = GENERATE(Case{24, 8, 8, 17, 48, 80, 1 << 24},   // as vfm-pack makes them
                          Case{24, 8, 8, 1, 64, 64, 1 << 24},    // a picture
                          Case{1536, 8, 8, 9, 16, 24, 1 << 24},  // all there is
                          Case{1, 4, 2, 9, 6, 10, 1 << 24},      // one plane of the twelve
                          Case{100, 4, 4, 21, 12, 20, 1},        // a latent frame at a time
                          Case{60, 2, 16, 13, 32, 16, 2048},     // two, and one is left
                          Case{12, 1, 2, 7, 2, 6, 24},           // no groups
                          Case{300, 16, 4, 33, 36, 132, 1 << 24});
  CAPTURE(c.channels, c.time, c.space, c.frames, c.height, c.width, c.gpu_pixels);
  const WaveletTokenizer cpu(c.channels, c.time, c.space);
  const WaveletTokenizer gpu(c.channels, c.time, c.space, Device::cuda, c.gpu_pixels);
  const auto pixels = uniform_noise(std::size_t(3) * c.frames * c.height * c.width, 1);
  const auto latents = gpu.encode(pixels, c.frames, c.height, c.width);
  CHECK(same_bits(latents, cpu.encode(pixels, c.frames, c.height, c.width)));
  const int t = 1 + (c.frames - 1) / c.time, h = c.height / c.space, w = c.width / c.space;
  const auto other = uniform_noise(latents.size(), 2);
  CHECK(same_bits(gpu.decode(other, t, h, w), cpu.decode(other, t, h, w)));
  CHECK(same_bits(gpu.decode(latents, t, h, w), cpu.decode(latents, t, h, w)));

  // The memory of the GPU that is counted is what its allocator hands out.
  const WaveletTokenizer blank(c.channels, c.time, c.space, Device::meta, c.gpu_pixels);
  const MetaAccount account(Device::cuda);
  blank.decode(latents, t, h, w);
  reset_cuda_peak();
  const double before = static_cast<double>(cuda_memory().current);
  gpu.decode(latents, t, h, w);
  const double taken = static_cast<double>(cuda_memory().peak) - before;
  const double lists = 4096 + 32.0 * c.channels;  // of bands
  CHECK(static_cast<double>(account.memory().peak) == Approx(taken).margin(lists));
}

TEST_CASE("what a tokenizer says of itself does not tell the device") {
  const models::TokenizerConfig config =
      models::make_tokenizer({.name = "builtin:wavelet"})->config();
  CHECK(models::make_tokenizer(config, Device::cuda)->config() == config);
}

TEST_CASE("threads take turns on the GPU") {
  const WaveletTokenizer cpu(24, 4, 4), gpu(24, 4, 4, Device::cuda);
  std::vector<std::vector<float>> pixels, latents(4);
  for (std::uint64_t i = 0; i < 4; ++i)
    pixels.push_back(uniform_noise(3 * 9 * 16 * 16, i));
  {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 4; ++i)
      threads.emplace_back([&, i] { latents[i] = gpu.encode(pixels[i], 9, 16, 16); });
    for (std::thread& thread : threads)
      thread.join();
  }
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(same_bits(latents[i], cpu.encode(pixels[i], 9, 16, 16)));
}

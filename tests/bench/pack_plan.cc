// How fast packs are planned: samples a second over an epoch of a mixed image and video set,
// shuffle included, for several sizes of the set and of the window.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>

#include "base/philox.h"
#include "data/order.h"

namespace {

/// Half images, half videos of 17 to 121 frames, five aspect ratios of about 256 x 256 pixels; a
/// latent pixel is 8 x 8 x 8 pixels, a token 2 x 2 latent pixels.
std::vector<std::int64_t> mixed_set(std::size_t samples) {
  constexpr int kShapes[5][2] = {{16, 16}, {12, 20}, {20, 12}, {14, 18}, {18, 14}};
  const vfm::Random random(1, vfm::Purpose::test);
  std::vector<std::int64_t> tokens;
  for (std::size_t i = 0; i < samples; ++i) {
    const auto& shape = kShapes[random.bits(3 * i) % 5];
    const int frames =
        random.bits(3 * i + 1) % 2 == 0 ? 1 : 17 + 8 * int(random.bits(3 * i + 2) % 14);
    tokens.push_back(std::int64_t{shape[0] * shape[1]} * (1 + (frames - 1) / 8));
  }
  return tokens;
}

}  // namespace

int main() {
  std::printf("samples\twindow\tfill\tspread\tseconds\tsamples_per_second\n");
  for (const std::size_t samples : {100'000, 1'000'000, 10'000'000})
    for (const int window : {64, 1024}) {
      const auto tokens = mixed_set(samples);
      const vfm::data::PackOptions options{.tokens = 8192, .window = window};
      const auto start = std::chrono::steady_clock::now();
      const auto packs = vfm::data::epoch_packs(tokens, options, 0, 0);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      const auto stats = vfm::data::pack_stats(tokens, packs, options);
      std::printf("%zu\t%d\t%.4f\t%.3f\t%.3f\t%.3g\n", samples, window, stats.fill,
                  stats.square_spread, took.count(), static_cast<double>(samples) / took.count());
    }
}

// How fast packs are planned: samples a second over an epoch of a mixed image and video set,
// shuffle included, for several sizes of the set and of the window; how full and how even they are.
// Seconds are of the processor: there is one thread, and other programs take no part in them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "base/philox.h"
#include "data/order.h"
#include "support/epoch_packs.h"

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

/// Of steps of eight packs: standard deviation of the share of images among their samples, and how
/// much more squares the heaviest pack has than the mean one, over all steps.
struct Steps {
  double share_spread = 0, heaviest = 0;
};

Steps of_steps(const std::vector<std::int64_t>& tokens, const std::vector<vfm::data::Pack>& packs) {
  constexpr std::size_t kPacks = 8;
  constexpr std::int64_t kImage = 256;  // no video is that short
  double shares = 0, share_squares = 0, heaviest = 0, sum = 0, steps = 0;
  for (std::size_t first = 0; first + kPacks <= packs.size(); first += kPacks, ++steps) {
    double images = 0, samples = 0, most = 0;
    for (std::size_t p = first; p < first + kPacks; ++p) {
      double squares = 0;
      for (const std::size_t i : packs[p]) {
        images += tokens[i] <= kImage ? 1 : 0;
        squares += static_cast<double>(tokens[i] * tokens[i]);
      }
      samples += static_cast<double>(packs[p].size());
      most = std::max(most, squares);
      sum += squares / kPacks;
    }
    shares += images / samples;
    share_squares += images / samples * (images / samples);
    heaviest += most;
  }
  const double mean = shares / steps;
  return {std::sqrt(std::max(0.0, share_squares / steps - mean * mean)), heaviest / sum};
}

}  // namespace

int main(int argc, char** argv) {
  using vfm::data::Packing;
  const bool best_fit = argc > 1 && std::strcmp(argv[1], "best-fit") == 0;
  const bool whole = argc > 1 && std::strcmp(argv[1], "whole") == 0;
  if (argc > 1 && !best_fit && !whole) {
    std::fprintf(stderr, "pack_plan: '%s' is not best-fit or whole\n", argv[1]);
    return 2;
  }
  std::printf(
      "samples\twindow\tfill\tspread\tseconds\tsamples_per_second\tshare_spread\theaviest\n");
  for (const std::size_t samples : {100'000, 1'000'000, 10'000'000})
    for (const int window : {64, 1024}) {
      const auto tokens = mixed_set(samples);
      const vfm::data::PackingOptions options{.tokens = 8192,
                                              .window = window,
                                              .packing = best_fit ? Packing::best_fit
                                                         : whole  ? Packing::balanced
                                                                  : Packing::blocks};
      const std::clock_t start = std::clock();
      const auto packs = vfm::data::epoch_packs(tokens, options, 0, 0);
      const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      const auto stats = vfm::data::pack_stats(tokens, packs, options);
      const Steps steps = of_steps(tokens, packs);
      std::printf("%zu\t%d\t%.4f\t%.3f\t%.3f\t%.3g\t%.3f\t%.3f\n", samples, window, stats.fill,
                  stats.square_spread, took, static_cast<double>(samples) / took,
                  steps.share_spread, steps.heaviest);
    }
}

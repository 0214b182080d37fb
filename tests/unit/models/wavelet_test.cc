// SPDX-License-Identifier: Apache-2.0
#include "models/wavelet/wavelet.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "models/wavelet/cdf97.h"
#include "support/distance.h"
#include "support/noise.h"
#include "tensor/allocator.h"
#include "tensor/device.h"
#include "tensor/meta.h"

using namespace vfm;
using namespace vfm::models;

namespace {

/// Frames [0, count) of a (channels, frames, plane) array.
std::vector<float> prefix(const std::vector<float>& all, int channels, int frames, int count,
                          std::size_t plane) {
  std::vector<float> out;
  for (int c = 0; c < channels; ++c)
    out.insert(out.end(), all.begin() + c * frames * plane,
               all.begin() + (c * frames + count) * plane);
  return out;
}

/// Grey frames, each of one value.
std::vector<float> grey(const std::vector<float>& values, int height, int width) {
  std::vector<float> out;
  for (int colour = 0; colour < 3; ++colour)
    for (const float v : values)
      out.insert(out.end(), std::size_t(height) * width, v);
  return out;
}

std::size_t channel_of(const WaveletTokenizer& tokenizer, int colour, int time) {
  for (std::size_t c = 0; c < tokenizer.bands().size(); ++c) {
    const auto& band = tokenizer.bands()[c];
    if (band.colour == colour && band.time == time && !band.high_x && !band.high_y) return c;
  }
  FAIL("no such channel");
  return 0;
}

}  // namespace

// PyWavelets 1.8.0: pywt.dwt(x, 'bior4.4', mode='reflect'), coefficients 2 to 9 of both halves,
// divided by sqrt 2; PyWavelets' high pass has the other sign.
TEST_CASE("CDF 9/7 gives the numbers of PyWavelets") {
  const std::vector<float> x = {12, -3, 7, 30, 30, 29, -50, 4, 4, 9, 16, 25, -36, 49, 1, 0};
  const std::vector<float> expected = {
      5.132156114848f,  6.551933483204f,  37.608169996097f, -24.043005263991f,
      7.469465734301f,  19.019221457148f, -3.306048701639f, 14.634185237456f,
      -6.378022314733f, 3.305548829128f,  21.605234643010f, 16.835348209811f,
      -5.653892839281f, 18.410722934020f, 37.723404548297f, -6.696688020383f};
  std::vector<float> out(16), back(16);
  cdf97_analyse(x.data(), out.data(), 16, 1);
  CHECK(largest_difference(out, expected) < 2e-5f);
  cdf97_synthesise(out.data(), back.data(), 16, 1);
  CHECK(largest_difference(back, x) < 2e-5f);
}

TEST_CASE("the memory of both directions is what the allocator hands out") {
  struct Case {
    int frames, time, space;
  };
  for (const Case& c : {Case{1, 8, 8}, {33, 8, 8}, {9, 1, 2}}) {
    const int frames = c.frames, time = c.time, space = c.space;
    const int height = 64, width = 96, t = 1 + (frames - 1) / time, h = height / space,
              w = width / space;
    const WaveletTokenizer tokenizer(12, time, space), blank(12, time, space, Device::meta);
    const std::vector<float> pixels(std::size_t(3) * frames * height * width);
    const std::vector<float> latents(std::size_t(12) * t * h * w);
    for (const bool encodes : {true, false}) {
      const MetaAccount account(Device::cpu);
      const auto run = [&](const WaveletTokenizer& one) {
        return encodes ? one.encode(pixels, frames, height, width) : one.decode(latents, t, h, w);
      };
      CHECK(run(blank).empty());
      reset_memory_peak();
      const std::size_t before = cpu_memory().current;
      CHECK(!run(tokenizer).empty());
      CHECK(account.memory().peak > 0);
      CHECK(account.memory().peak == cpu_memory().peak - before);
    }
  }
}

TEST_CASE("two rows, the shortest line there is, come back") {
  const std::vector<float> x = {3, -1, 5, 7};
  std::vector<float> out(4), back(4);
  cdf97_analyse(x.data(), out.data(), 2, 2);
  cdf97_synthesise(out.data(), back.data(), 2, 2);
  CHECK(largest_difference(back, x) < 1e-6f);
}

// By hand: for f(t) = t^2 the line through the neighbours is exact inside, and wrong at the ends.
TEST_CASE("time details are what a straight line does not predict") {
  const WaveletTokenizer tokenizer(96, 8, 2);
  std::vector<float> values = {7};
  for (int t = 0; t < 8; ++t)
    values.push_back(static_cast<float>(t * t));
  const auto latent = tokenizer.encode(grey(values, 4, 4), 9, 4, 4);
  const float expected[8] = {17.5f, -14, 4, -4, 1, 0, 0, -1};
  for (int row = 0; row < 8; ++row) {
    const float* channel = latent.data() + channel_of(tokenizer, 0, row) * 2 * 4;
    CHECK(channel[0] == Approx(row == 0 ? 7 : 0).margin(1e-5));
    CHECK(channel[4] == Approx(expected[row]).margin(1e-4));
  }
}

TEST_CASE("all bands together are the video") {
  const auto [time, space, frames, height, width] =
      GENERATE(table<int, int, int, int, int>({{8, 8, 17, 16, 24},
                                               {4, 8, 9, 8, 8},
                                               {1, 2, 3, 2, 6},
                                               {16, 4, 17, 12, 4},
                                               {2, 16, 5, 32, 16},
                                               {8, 8, 1, 64, 8}}));
  const WaveletTokenizer tokenizer(3 * time * space * space, time, space);
  const auto pixels = uniform_noise(std::size_t(3) * frames * height * width, 1);
  const auto latent = tokenizer.encode(pixels, frames, height, width);
  const auto back =
      tokenizer.decode(latent, 1 + (frames - 1) / time, height / space, width / space);
  CHECK(largest_difference(back, pixels) < 2e-5f);
}

TEST_CASE("encoding is causal: a prefix of the video gives a prefix of the latent") {
  const WaveletTokenizer tokenizer(24, 8, 8);
  const auto pixels = uniform_noise(3 * 25 * 16 * 16, 1);
  const auto whole = tokenizer.encode(pixels, 25, 16, 16);
  for (const int frames : {1, 9, 17}) {
    const int t = 1 + (frames - 1) / 8;
    const auto part = tokenizer.encode(prefix(pixels, 3, 25, frames, 256), frames, 16, 16);
    CHECK(part == prefix(whole, 24, 4, t, 4));
    const auto decoded = tokenizer.decode(part, t, 2, 2);
    CHECK(decoded == prefix(tokenizer.decode(whole, 4, 2, 2), 3, 25, frames, 256));
  }
}

TEST_CASE("a still image is the low band of a still video") {
  const WaveletTokenizer tokenizer(48, 4, 8);
  const auto image = uniform_noise(3 * 32 * 32, 1);
  std::vector<float> still;
  for (int colour = 0; colour < 3; ++colour)
    for (int t = 0; t < 5; ++t)
      still.insert(still.end(), image.begin() + colour * 1024, image.begin() + (colour + 1) * 1024);
  const auto one = tokenizer.encode(image, 1, 32, 32);
  const auto video = tokenizer.encode(still, 5, 32, 32);
  for (std::size_t c = 0; c < 48; ++c)
    for (std::size_t i = 0; i < 16; ++i) {
      CHECK(video[c * 32 + i] == one[c * 16 + i]);
      CHECK(video[c * 32 + 16 + i] == Approx(one[c * 16 + i]).margin(1e-5));
      if (tokenizer.bands()[c].time > 0) CHECK(one[c * 16 + i] == 0);
    }
}

TEST_CASE("a flat colour is one number a channel, on the scale of pixels") {
  const WaveletTokenizer tokenizer(12, 8, 8);
  std::vector<float> red(3 * 9 * 16 * 16, -1.0f);
  std::fill_n(red.begin(), 9 * 256, 1.0f);
  const auto latent = tokenizer.encode(red, 9, 16, 16);
  // Y' = .299 - .701, Cb = (-1 - Y') / 1.772, Cr = 1.
  const float expected[3] = {-0.402f, -0.33747f, 1.0f};
  for (std::size_t c = 0; c < 12; ++c)
    for (std::size_t i = 0; i < 8; ++i)
      CHECK(latent[c * 8 + i] == Approx(c < 3 ? expected[c] : 0).margin(1e-4));
}

TEST_CASE("few channels are the first of many, and every band comes once") {
  const WaveletTokenizer all(3 * 8 * 64, 8, 8), few(24, 8, 8);
  std::set<std::tuple<int, int, int, bool, bool, int, int>> seen;
  for (std::size_t c = 0; c < all.bands().size(); ++c) {
    const auto& b = all.bands()[c];
    CHECK(seen.emplace(b.colour, b.time, b.level, b.high_x, b.high_y, b.row, b.column).second);
  }
  const auto pixels = uniform_noise(3 * 9 * 16 * 8, 1);
  const auto many = all.encode(pixels, 9, 16, 8), some = few.encode(pixels, 9, 16, 8);
  CHECK(std::equal(some.begin(), some.end(), many.begin()));
  // The 24 that the header names.
  for (const auto& b : few.bands()) {
    CHECK(b.level == 3);
    CHECK_FALSE((b.high_x && b.high_y));
    CHECK(b.time < (b.high_x || b.high_y ? 2 : 4));
  }
}

TEST_CASE("a moving disc survives 24 channels") {
  const int frames = 17, size = 64;
  std::vector<float> pixels(3 * frames * size * size);
  const float ground[3] = {0, 0, 0}, colour[3] = {0.7f, -0.7f, -0.7f};
  const auto inside = [](int t, int y, int x) {
    return std::hypot(x + 0.5 - (20 + 1.5 * t), y + 0.5 - 32) < 12;
  };
  for (int c = 0; c < 3; ++c)
    for (int t = 0; t < frames; ++t)
      for (int y = 0; y < size; ++y)
        for (int x = 0; x < size; ++x)
          pixels[((c * frames + t) * size + y) * size + x] =
              inside(t, y, x) ? colour[c] : ground[c];
  const WaveletTokenizer tokenizer(24, 8, 8);
  const auto back = tokenizer.decode(tokenizer.encode(pixels, frames, size, size), 3, 8, 8);
  double both = 0, either = 0;
  for (int t = 0; t < frames; ++t)
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x) {
        const bool found = back[(t * size + y) * size + x] > 0.35f, truth = inside(t, y, x);
        both += found && truth;
        either += found || truth;
      }
  CHECK(both / either > 0.9);
}

TEST_CASE("a tokenizer is built from its configuration, and misspelt ones are refused") {
  const auto made = make_tokenizer({.name = "builtin:wavelet"});
  CHECK(made->channels() == 24);
  CHECK(made->time_factor() == 8);
  CHECK(made->space_factor() == 8);
  const WaveletTokenizer other(7, 4, 2);
  const auto again = make_tokenizer(other.config());
  CHECK(again->config() == other.config());
  const auto refused = [](const char* json) {
    try {
      make_tokenizer(TokenizerConfig::from_json(Json::parse(json)));
    } catch (const Error& error) {
      return error.kind() == ErrorKind::usage;
    }
    return false;
  };
  CHECK(refused("3"));
  CHECK(refused("{}"));
  CHECK(refused(R"({"name":"builtin:wavelt"})"));
  CHECK(refused(R"({"name":"builtin:wavelet","chanels":3})"));
  CHECK(refused(R"({"name":"builtin:wavelet","channels":"3"})"));
  CHECK(refused(R"({"name":"builtin:wavelet","channels":0})"));
  CHECK(refused(R"({"name":"builtin:wavelet","channels":1537})"));
  CHECK(refused(R"({"name":"builtin:wavelet","time_factor":3})"));
  CHECK(refused(R"({"name":"builtin:wavelet","space_factor":-8})"));
  CHECK_THROWS_AS(made->encode(uniform_noise(3 * 8 * 8 * 8, 1), 8, 8, 8), Error);
  CHECK_THROWS_AS(made->encode(uniform_noise(3 * 8 * 12, 1), 1, 8, 12), Error);
  CHECK_THROWS_AS(made->encode(uniform_noise(5, 1), 1, 8, 8), Error);
  CHECK_THROWS_AS(made->decode(uniform_noise(5, 1), 1, 1, 1), Error);
}

TEST_CASE("a GPU that is not there is no CPU") {
  if (why_no_gpu().empty()) return;
  CHECK_THROWS_WITH(WaveletTokenizer(24, 8, 8, Device::cuda),
                    Catch::Contains("cannot compute on a GPU: " + why_no_gpu()));
}

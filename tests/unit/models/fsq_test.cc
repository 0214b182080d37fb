// Finite scalar quantisation against the same formulas in PyTorch, and the discrete tokenizer
// without weights.
// SPDX-License-Identifier: Apache-2.0
#include "models/fsq.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/philox.h"
#include "models/wavelet/fsq_wavelet.h"
#include "ops/pointwise/fsq.h"

using namespace vfm;
using namespace vfm::models;

TEST_CASE("training quantises to the values of the codes") {
  const std::vector<int> levels = {8, 5, 3, 4};
  const Fsq fsq(levels);
  const Tensor z({300, 4});
  Random(1, Purpose::test, 0, 5).fill_normal(z.floats());
  for (float& value : z.floats())
    value *= 2;
  ops::Tape silent(false);
  const Tensor values = ops::fsq(silent, z, levels);
  for (std::size_t i = 0; i < 300; ++i) {
    float expected[4];
    fsq.values(fsq.encode(z.data<float>() + 4 * i, 1), expected, 1);
    for (std::size_t d = 0; d < 4; ++d)
      CHECK(values.floats()[4 * i + d] == expected[d]);
  }
}

TEST_CASE("codes of FSQ, as NVIDIA's levels make them") {
  const Fsq fsq(kFsqLevels);
  CHECK(fsq.codes() == 64000);
  const std::vector<float> rows[] = {{0, 0, 0, 0, 0, 0},
                                     {9, 9, 9, 9, 9, 9},
                                     {-9, -9, -9, -9, -9, -9},
                                     {0.5f, -0.5f, 1.f, 0.3f, -0.2f, 2.f}};
  const std::int32_t expected[] = {32036, 63999, 0, 58261};
  for (int i = 0; i < 4; ++i)
    CHECK(fsq.encode(rows[i].data(), 1) == expected[i]);
  std::vector<float> out(6);
  fsq.values(58261, out.data(), 1);
  CHECK(out == std::vector<float>{0.25f, -0.5f, 0.5f, 0.5f, 0, 1});
  CHECK_THROWS_AS(fsq.values(64000, out.data(), 1), Error);
  CHECK_THROWS_AS(fsq.values(-1, out.data(), 1), Error);
  CHECK_THROWS_AS(Fsq({8, 2}), Error);
  CHECK_THROWS_AS(Fsq(std::vector<int>(16, 1024)), Error);
}

TEST_CASE("what a level means becomes that level again") {
  const Fsq fsq({8, 5, 3, 7});
  std::vector<float> q(4), z(4);
  for (std::int32_t code = 0; code < fsq.codes(); ++code) {
    fsq.values(code, q.data(), 1);
    for (std::size_t i = 0; i < 4; ++i)
      z[i] = fsq.unbound(i, q[i]);
    REQUIRE(fsq.encode(z.data(), 1) == code);
  }
}

TEST_CASE("builtin:fsq makes codes of pixels, and of codes pixels that look like them") {
  const auto tokenizer = make_tokenizer({.name = "builtin:fsq"});
  CHECK(tokenizer->vocabulary() == 64000);
  CHECK(tokenizer->channels() == 6);
  constexpr int kFrames = 9, kSide = 32;
  std::vector<float> pixels;
  for (int colour = 0; colour < 3; ++colour)
    for (int t = 0; t < kFrames; ++t)
      for (int y = 0; y < kSide; ++y)
        for (int x = 0; x < kSide; ++x)
          pixels.push_back(0.7f * std::sin(0.15f * (x + y + t) + colour));
  const auto codes = tokenizer->encode_codes(pixels, kFrames, kSide, kSide);
  REQUIRE(codes.size() == 3 * 8 * 8);
  CHECK(*std::ranges::max_element(codes) < 64000);
  CHECK(*std::ranges::min_element(codes) >= 0);
  CHECK(std::set<std::int32_t>(codes.begin(), codes.end()).size() > 20);
  const auto decoded = tokenizer->decode_codes(codes, 3, 8, 8);
  REQUIRE(decoded.size() == pixels.size());
  double squares = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i)
    squares += std::pow(pixels[i] - decoded[i], 2);
  CHECK(std::sqrt(squares / static_cast<double>(pixels.size())) < 0.15);
  const auto latent = tokenizer->encode(pixels, kFrames, kSide, kSide);
  CHECK(tokenizer->decode(latent, 3, 8, 8) == decoded);
  const auto again = make_tokenizer(tokenizer->config());
  CHECK(again->encode_codes(pixels, kFrames, kSide, kSide) == codes);
}

TEST_CASE("a continuous tokenizer has no codes") {
  const auto tokenizer = make_tokenizer({.name = "builtin:wavelet"});
  CHECK(tokenizer->vocabulary() == 0);
  CHECK_THROWS_AS(tokenizer->encode_codes({}, 1, 8, 8), Error);
  CHECK_THROWS_AS(make_tokenizer({.name = "builtin:fsq", .levels = {8, 1}}), Error);
  CHECK_THROWS_AS(make_tokenizer({.name = "builtin:fsq", .channels = 6}), Error);
}

// SPDX-License-Identifier: Apache-2.0
#include "text/hash_encoder.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"

using vfm::text::HashEncoder;
using vfm::text::TokenEmbeddings;

namespace {

double cosine(const TokenEmbeddings& a, int i, const TokenEmbeddings& b, int j) {
  double ab = 0, aa = 0, bb = 0;
  for (int d = 0; d < a.dim; ++d) {
    const double x = a.values[static_cast<std::size_t>(i * a.dim + d)];
    const double y = b.values[static_cast<std::size_t>(j * b.dim + d)];
    ab += x * y, aa += x * x, bb += y * y;
  }
  return ab / std::sqrt(aa * bb);
}

double word_cosine(const std::string& a, const std::string& b) {
  const HashEncoder encoder(256);
  return cosine(encoder.encode(a), 0, encoder.encode(b), 0);
}

}  // namespace

TEST_CASE("one token a word, unit variance, deterministic") {
  const HashEncoder encoder;
  const auto tokens = encoder.encode("a red circle moves left");
  REQUIRE(tokens.tokens == 5);
  REQUIRE(tokens.dim == 64);
  REQUIRE(tokens.values.size() == 5 * 64);
  CHECK(tokens.values == encoder.encode("A  red circle, moves LEFT!").values);
  for (int t = 0; t < 5; ++t) {
    double squares = 0;
    for (int d = 0; d < 64; ++d)
      squares += std::pow(tokens.values[static_cast<std::size_t>(t * 64 + d)], 2);
    CHECK(squares / 64 == Approx(1).margin(1e-5));
  }
  CHECK(encoder.encode("").tokens == 0);
  CHECK(encoder.encode(" ...").values.empty());
  CHECK(encoder.encode("\xff\xff").tokens >= 1);
}

TEST_CASE("the words that a small model must tell apart are far apart") {
  const HashEncoder encoder;
  const auto all = encoder.encode("red green blue yellow circle square left right up down");
  for (int i = 0; i < all.tokens; ++i)
    for (int j = 0; j < i; ++j)
      CHECK(std::abs(cosine(all, i, all, j)) < 0.45);
}

TEST_CASE("the same word in other company stays close, and order shows") {
  const HashEncoder encoder;
  const auto a = encoder.encode("red circle moves left");
  const auto b = encoder.encode("blue circle moves right");
  CHECK(cosine(a, 1, b, 1) > 0.75);
  CHECK(cosine(a, 2, b, 2) > 0.99);
  const auto x = encoder.encode("fox chases dog");
  const auto y = encoder.encode("dog chases fox");
  CHECK(cosine(x, 0, y, 2) > 0.75);
  CHECK(cosine(x, 0, y, 2) < 0.95);
}

TEST_CASE("misspellings and inflections are near, strangers are not") {
  CHECK(word_cosine("rabbit", "rabit") > 0.3);
  CHECK(word_cosine("moving", "moves") > 0.15);
  CHECK(word_cosine("circle", "circles") > 0.3);
  CHECK(std::abs(word_cosine("rabbit", "volcano")) < 0.2);
  CHECK(word_cosine("лиса", "лисы") > 0.25);
}

TEST_CASE("a hundred kilobytes of caption give max_tokens tokens") {
  std::string text;
  for (int i = 0; text.size() < 100'000; ++i)
    text += "word" + std::to_string(i) + " ";
  CHECK(HashEncoder().encode(text).tokens == 512);
  CHECK(HashEncoder(64, 7).encode(text).tokens == 7);
  CHECK(HashEncoder().encode(std::string(100'000, 'a')).tokens == 1);
}

TEST_CASE("vectors never change: they are stored in models") {
  // From the definition in hash_encoder.h, computed by an independent Python program.
  const auto v = HashEncoder(8).encode("red").values;
  const std::vector<float> expected = {0.604565f, -0.510851f, 1.227438f, -1.473709f,
                                       0.169993f, -1.039137f, 1.039137f, 1.227438f};
  for (std::size_t i = 0; i < 8; ++i)
    CHECK(v[i] == Approx(expected[i]).margin(1e-5));
}

TEST_CASE("an encoder is built again from its config") {
  const HashEncoder encoder(32, 9);
  const auto again = vfm::text::make_encoder(encoder.config());
  CHECK(again->config() == encoder.config());
  CHECK(again->encode("a red fox").values == encoder.encode("a red fox").values);
  CHECK(vfm::text::make_encoder({.name = "builtin:hash"})->dim() == 64);
  for (const vfm::text::EncoderConfig& bad :
       std::vector<vfm::text::EncoderConfig>{{.name = "builtin:hush"},
                                             {},
                                             {.name = "builtin:hash", .unknown = "dims"},
                                             {.name = "builtin:hash", .dim = 0},
                                             {.name = "builtin:hash", .dim = 64, .version = 2}})
    CHECK_THROWS_AS(vfm::text::make_encoder(bad), vfm::Error);
}

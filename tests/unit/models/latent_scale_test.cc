// SPDX-License-Identifier: Apache-2.0
#include "models/process/latent_scale.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "models/process/process.h"

using namespace vfm;
using namespace vfm::models;

TEST_CASE("latents are whitened channel by channel, and back", "[latent_scale]") {
  const LatentScale scale{{1, -2}, {2, 0.5}};
  std::vector<float> latent = {1, 3, 5, -2, -1.5, -3};
  scale.to_model(latent, 3, Process::edm);
  CHECK(latent == std::vector<float>{0, 0.5, 1, 0, 0.5, -1});
  scale.from_model(latent, 3, Process::edm);
  CHECK(latent == std::vector<float>{1, 3, 5, -2, -1.5, -3});
}

TEST_CASE("trap 4: latents are whitened by statistics of their own frame, and back",
          "[latent_scale]") {
  // Two channels, statistics of two frames; three frames of two values: the last has the second's.
  const LatentScale scale{{1, 3, -2, 0}, {2, 1, 0.5, 4}, 2};
  CHECK(scale.channels() == 2);
  const std::vector<float> before = {1, 5, 3, 4, 2, 5, -2, -1.5, 0, 4, -4, 8};
  std::vector<float> latent = before;
  scale.to_model(latent, 3, Process::edm);
  CHECK(latent == std::vector<float>{0, 1, 0, 0.5, -0.5, 1, 0, 0.5, 0, 0.5, -0.5, 1});
  scale.from_model(latent, 3, Process::edm);
  CHECK(latent == before);
  // A shorter clip has the first frames' statistics.
  std::vector<float> still = {1, 5, -2, -1.5};
  scale.to_model(still, 1, Process::edm);
  CHECK(still == std::vector<float>{0, 1, 0, 0.5});
  const LatentScale again = LatentScale::from_json(scale.to_json(), "'latents.json'");
  CHECK((again.mean == scale.mean && again.std == scale.std && again.frames == 2));
  CHECK_FALSE(LatentScale{{1}, {2}}.to_json().contains("frames"));
}

TEST_CASE("broken statistics are refused", "[latent_scale]") {
  const auto read = [](const char* text) {
    return LatentScale::from_json(Json::parse(text), "'latents.json'");
  };
  CHECK(read(R"({"mean":[0,1],"std":[1,2]})").channels() == 2);
  CHECK_THROWS_AS(read("[]"), Error);
  CHECK_THROWS_AS(read("{}"), Error);
  CHECK_THROWS_AS(read(R"({"mean":[0],"std":[]})"), Error);
  CHECK_THROWS_AS(read(R"({"mean":[0,1],"std":[1]})"), Error);
  CHECK_THROWS_AS(read(R"({"mean":[0],"std":[0]})"), Error);
  CHECK_THROWS_AS(read(R"({"mean":["0"],"std":[1]})"), Error);
  CHECK(read(R"({"mean":[0,1],"std":[1,2],"frames":2})").channels() == 1);
  for (const char* frames : {"0", "3", "-1", "4000000000000"})
    CHECK_THROWS_AS(
        read(fmt::format(R"({{"mean":[0,1],"std":[1,2],"frames":{}}})", frames).c_str()), Error);
}

TEST_CASE("partial whitening keeps the root mean square, and the order of the channels",
          "[latent_scale]") {
  const LatentScale scale{{0, 0, 0}, {0.32, 0.02, 0.08}};
  for (const double degree : {0.0, 0.25, 0.5, 1.0}) {
    const LatentScale part = scale.whitened(degree);
    double squares = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      const double deviation = scale.std[c] / part.std[c] * kSigmaData;  // of x0
      squares += deviation * deviation;
      const double first = scale.std[0] / part.std[0] * kSigmaData;
      CHECK(deviation / first == Approx(std::pow(scale.std[c] / scale.std[0], 1 - degree)));
    }
    CHECK(std::sqrt(squares / 3) == Approx(kSigmaData));
  }
  CHECK(scale.whitened(1).std == scale.std);
}

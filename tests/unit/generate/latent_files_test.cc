// SPDX-License-Identifier: Apache-2.0
#include "generate/files/latent_files.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/json.h"
#include "generate/request/latent_facts.h"
#include "io/safetensors.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::generate;
using Catch::Contains;

TEST_CASE("a latent and a state come back as they were, for their own address alone") {
  const TemporaryFolder folder;
  CHECK_FALSE(has_latent(folder.path, "a"));
  write_latent(folder.path, "a", {2, 1, 1, 3, {1, 2, 3, 4, 5, 6.5f}}, "one");
  CHECK(has_latent(folder.path, "a"));
  CHECK_FALSE(has_state(folder.path, "a"));
  const Latent latent = read_latent(folder.path, "a", "one");
  CHECK(std::array{latent.channels, latent.frames, latent.height, latent.width} ==
        std::array{2, 1, 1, 3});
  CHECK(latent.values == std::vector<float>{1, 2, 3, 4, 5, 6.5f});
  CHECK_THROWS_WITH(read_latent(folder.path, "a", "on"), Contains("another clip"));
  CHECK_THROWS_AS(read_latent(folder.path, "b", "one"), Error);

  write_state(folder.path, "a", {7, {0.1, 0.2}, {}}, "one");
  CHECK(read_state(folder.path, "a", "one").estimates.empty());
  CHECK(read_state(folder.path, "a", "one").corrected.empty());
  const std::vector<std::vector<double>> estimates = {{0.3, 1e-300}, {4, 5}};
  write_state(folder.path, "a", {8, {0.1, 0.2}, estimates, {6, 7}}, "one");
  CHECK(io::SafetensorsSet(folder.path, "a.state").find("previous"));  // the newest
  const models::SamplerState state = read_state(folder.path, "a", "one");
  CHECK(state.step == 8);
  CHECK(state.x == std::vector<double>{0.1, 0.2});
  CHECK(state.estimates == estimates);
  CHECK(state.corrected == std::vector<double>{6, 7});
  CHECK_THROWS_WITH(read_state(folder.path, "a", "two"), Contains("another clip"));
  remove_state(folder.path, "a");
  CHECK_FALSE(has_state(folder.path, "a"));
  CHECK(has_latent(folder.path, "a"));
  remove_latent(folder.path, "a");
  CHECK_FALSE(has_latent(folder.path, "a"));
}

TEST_CASE("files that are no latents and no states are refused") {
  const TemporaryFolder folder;
  const std::vector<float> values(4);
  const std::vector<std::int64_t> steps = {-1, 3};
  const auto bytes = [](const auto& data) { return std::as_bytes(std::span(data)); };
  const std::string address = "one";
  const auto write = [&](const std::string& name, std::vector<io::TensorView> tensors) {
    tensors.push_back({"address", "U8", {3}, std::as_bytes(std::span(address))});
    io::write_safetensors(folder.path, name, std::move(tensors));
  };
  const auto refused = [&](const char* dtype, const std::vector<std::int64_t>& shape,
                           std::size_t count) {
    write("a.latents", {{"latent", dtype, shape, bytes(values).first(count)}});
    CHECK_THROWS_AS(read_latent(folder.path, "a", "one"), Error);
  };
  refused("F32", {2, 2}, 16);
  refused("F32", {1, 2, 2, 1, 1}, 16);
  refused("F32", {1, 0, 2, 2}, 0);
  refused("I32", {1, 1, 2, 2}, 16);
  write("a.latents", {});
  CHECK_THROWS_WITH(read_latent(folder.path, "a", "one"), Contains("has no latent"));
  const auto state = [&](std::size_t begin, std::size_t count) {
    write("a.state", {{"x", "F64", {2}, bytes(values)},
                      {"step",
                       "I64",
                       {static_cast<std::int64_t>(count)},
                       bytes(steps).subspan(8 * begin, 8 * count)}});
    return read_state(folder.path, "a", "one").step;
  };
  CHECK(state(1, 1) == 3);
  CHECK_THROWS_WITH(state(0, 1), Contains("has no step"));
  CHECK_THROWS_WITH(state(0, 2), Contains("has no step"));
  CHECK_THROWS_WITH(state(0, 0), Contains("has no step"));
}

TEST_CASE("what decides a latent has one order, and the rest of a record no say") {
  const Json record = {{"quality", 12}, {"seed", 3}, {"name", "n"}, {"prompt", "p"}};
  CHECK(dump_json(latent_facts(record)) == R"({"prompt":"p","seed":3})");
}

// Inference in FP8 on the CPU: what it changes and by how much, and what it refuses.
// SPDX-License-Identifier: Apache-2.0
#include "models/dit/fp8.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/philox.h"
#include "models/dit/architecture.h"
#include "models/dit/dit.h"
#include "support/noise.h"

using namespace vfm;
using namespace vfm::models;

namespace {

NetworkConfig small(int heads, int head_dim) {
  NetworkConfig c;
  c.in_channels = c.out_channels = 4;
  c.num_attention_heads = heads;
  c.attention_head_dim = head_dim;
  c.num_layers = 2;
  c.text_embed_dim = 16;
  c.own<models::DitFields>().adaln_lora_dim = 8;
  c.max_size = {4, 8, 8};
  return c;
}

// Matrices of which each keeps the size of what goes through, and none is zero.
Dit random_dit(const NetworkConfig& config, DType compute) {
  Dit dit(config, 1, compute);
  for (nn::Parameter* p : dit.parameters()) {
    Tensor values(p->shape());
    Random(2, Purpose::test, 0, random_key(p->name)).fill_normal(values.floats());
    const float size =
        p->shape().size() == 2 ? 1 / std::sqrt(static_cast<float>(p->shape()[1])) : 0.1f;
    for (float& v : values.floats())
      v = v * size + (p->shape().size() == 1 ? 1.f : 0.f);
    p->write(values);
  }
  return dit;
}

NetworkBatch pack() {
  NetworkBatch batch;
  batch.samples = {{3, 4, 6, 12.f, 0.4f, 3}, {1, 8, 4, 0.f, -0.3f, 1}};
  batch.latents = noise_tensor({4 * (72 + 32)}, 1);
  batch.text = noise_tensor({4, 16}, 2);
  return batch;
}

std::vector<float> output(const Dit& dit) {
  ops::Tape tape(false);
  const Tensor result = dit.forward(tape, pack());
  return {result.floats().begin(), result.floats().end()};
}

/// How much FP8 changes the output of pack().
double error_of(Dit& dit, Fp8Parts parts) {
  return fp8_error([&](Fp8Parts some) { dit.set_inference_fp8(some); },
                   [&] {
                     ops::Tape tape(false);
                     return dit.forward(tape, pack());
                   },
                   parts);
}

double apart(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference += std::pow(double{a[i]} - b[i], 2), size += std::pow(double{b[i]}, 2);
  return std::sqrt(difference / size);
}

}  // namespace

TEST_CASE("each part of FP8 changes the output a little, and is gone when switched off") {
  Dit dit = random_dit(small(2, 64), DType::bf16);
  const std::vector<float> without = output(dit);
  std::vector<std::vector<float>> with;
  for (const Fp8Parts parts :
       {Fp8Parts{true, false}, Fp8Parts{false, true}, Fp8Parts{true, true}}) {
    dit.set_inference_fp8(parts);
    with.push_back(output(dit));
    const double error = apart(with.back(), without);
    INFO(fp8_name(parts) << " " << error);
    CHECK(error > 1e-3);
    CHECK(error < 0.15);
    dit.set_inference_fp8({});
    CHECK(output(dit) == without);
    CHECK(error_of(dit, parts) == Approx(error).epsilon(1e-9));
    CHECK(output(dit) == without);  // measuring leaves nothing behind
  }
  CHECK(with[0] != with[1]);
  CHECK(with[1] != with[2]);
  CHECK(with[0] != with[2]);
}

TEST_CASE("elementwise recompute, which is for training, changes nothing of FP8") {
  Dit dit = random_dit(small(2, 64), DType::bf16);
  dit.set_inference_fp8({true, true});
  const std::vector<float> before = output(dit);
  for (const nn::Recompute recompute : {nn::Recompute::elementwise, nn::Recompute::block}) {
    dit.set_recompute(recompute);
    CHECK(output(dit) == before);
  }
}

TEST_CASE("a model in f32 has FP8 products, but no attention") {
  Dit dit = random_dit(small(2, 64), DType::f32);
  CHECK(error_of(dit, {.linear = true}) < 0.15);
  CHECK_THROWS_WITH(dit.set_inference_fp8({.attention = true}), Catch::Contains("bf16"));
}

TEST_CASE("FP8 is refused for training, and for sizes that it does not take") {
  Dit dit = random_dit(small(2, 64), DType::bf16);
  dit.set_inference_fp8({.linear = true});
  ops::Tape recording;
  CHECK_THROWS_WITH(dit.forward(recording, pack()), Catch::Contains("inference"));
  dit.set_inference_fp8({});
  CHECK_NOTHROW(dit.forward(recording, pack()));

  const auto kind_of = [](const NetworkConfig& config, Fp8Parts parts) {
    try {
      check_fp8(config, DType::bf16, parts);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(kind_of(small(2, 64), {true, true}).empty());
  CHECK(kind_of(small(4, 32), {true, false}).empty());
  CHECK(kind_of(small(4, 32), {true, true}).find("64 or 128") != std::string::npos);
  CHECK(kind_of(small(2, 12), {true, false}).find("multiples of 16") != std::string::npos);
  NetworkConfig narrow = small(2, 64);
  narrow.text_embed_dim = 10;
  CHECK(kind_of(narrow, {true, false}).find("multiples of 16") != std::string::npos);
  CHECK(kind_of(narrow, {false, true}).empty());
}

TEST_CASE("a damaged model is no small error") {
  Dit dit = random_dit(small(2, 64), DType::bf16);
  nn::Parameter* p = dit.parameters().back();
  Tensor values = p->read().clone();
  values.floats()[0] = std::numeric_limits<float>::quiet_NaN();
  p->write(values);
  const double error = error_of(dit, {.linear = true});
  CHECK_FALSE(error <= 1e30);
}

TEST_CASE("the names of what is in FP8") {
  for (const char* name : {"off", "linear", "all"})
    CHECK(fp8_name(parse_fp8(name)) == name);
  CHECK_FALSE(parse_fp8("off").any());
  CHECK_THROWS_AS(parse_fp8("some"), Error);
}

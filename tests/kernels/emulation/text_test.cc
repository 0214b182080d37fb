// The T5 encoder and the ops of encoders on the GPU, as the emulation runs it, against the CPU.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include "models/folder/hf_folder.h"
#include "models/t5/t5.h"
#include "ops/attention/attention.h"
#include "ops/norm/layer_norm.h"
#include "ops/pointwise/activations.h"
#include "tensors.h"

using namespace vfm;
using test::apart;

TEST_CASE("relative attention on the GPU is the CPU's") {
  ops::Tape tape(false);
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const int head_dim = GENERATE(5, 8, 64, 128);
  ops::AttentionPack pack;
  pack.query_lengths = pack.key_lengths = {5, 1, 0, 70, 33};
  pack.heads = pack.key_heads = 3;
  pack.head_dim = head_dim;
  const Shape shape{109, std::int64_t{3} * head_dim};
  const Tensor q = noise_tensor(shape, 1, dtype), k = noise_tensor(shape, 2, dtype),
               v = noise_tensor(shape, 3, dtype);
  const Tensor bias = noise_tensor({3, 2 * 90 - 1}, 4, DType::f32);
  const Tensor expected = ops::relative_attention(tape, q, k, v, bias, pack);
  const auto gpu = [](const Tensor& t) { return t.to(Device::cuda); };
  const Tensor out = ops::relative_attention(tape, gpu(q), gpu(k), gpu(v), gpu(bias), pack);
  CHECK(apart(out, expected) < (dtype == DType::f32 ? 1e-5 : 1e-2));
}

TEST_CASE("the activations of text encoders on the GPU are the CPU's") {
  ops::Tape tape(false);
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const std::int64_t n = GENERATE(1, 7, 255, 4097);
  const Tensor x = noise_tensor({n}, 1, dtype), factor = noise_tensor({n}, 2, dtype);
  const Tensor gelu = x.to(Device::cuda), relu = x.to(Device::cuda);
  ops::gated_gelu_in_place(tape, gelu, factor.to(Device::cuda));
  ops::relu_in_place(tape, relu);
  const Tensor gelu_cpu = x.clone(), relu_cpu = x.clone();
  ops::gated_gelu_in_place(tape, gelu_cpu, factor);
  ops::relu_in_place(tape, relu_cpu);
  CHECK(apart(gelu, gelu_cpu) < (dtype == DType::f32 ? 1e-6 : 8e-3));
  CHECK(apart(relu, relu_cpu) == 0);
  for (const ops::ActivationKind kind : {ops::ActivationKind::tanh_gelu, ops::ActivationKind::gelu,
                                         ops::ActivationKind::quick_gelu}) {
    const Tensor there = x.to(Device::cuda), here = x.clone();
    ops::activate_in_place(tape, there, kind);
    ops::activate_in_place(tape, here, kind);
    INFO("kind " << static_cast<int>(kind));
    CHECK(apart(there, here) < (dtype == DType::f32 ? 1e-6 : 8e-3));
  }
}

TEST_CASE("layer norm on the GPU is the CPU's") {
  ops::Tape tape(false);
  const std::int64_t rows = GENERATE(0, 1, 5), width = GENERATE(1, 7, 96, 768, 4100);
  const Tensor x = noise_tensor({rows, width}, 1), weight = noise_tensor({width}, 2),
               bias = noise_tensor({width}, 3);
  const auto gpu = [](const Tensor& t) { return t.to(Device::cuda); };
  const Tensor there = ops::layer_norm(tape, gpu(x), gpu(weight), gpu(bias), 1e-5f);
  const Tensor here = ops::layer_norm(tape, x, weight, bias, 1e-5f);
  CHECK(there.device() == Device::cuda);
  CHECK(there.shape() == here.shape());
  if (rows > 0) CHECK(apart(there, here) < 1e-6);
}

TEST_CASE("T5 and umT5 on the GPU are the CPU's") {
  const std::string name = GENERATE("v1_0/text_encoder", "v1_1", "umt5");
  const DType compute = GENERATE(DType::f32, DType::bf16);
  INFO(name);
  const models::HfComponent component(std::string(VFM_GOLDEN) + "/t5/" + name);
  const auto config =
      models::T5Config::from_json(component.config(), component.type(), "config.json");
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 60; ++i)
    ids.push_back(i * 37 % 530);
  const std::vector<std::int64_t> lengths{40, 1, 19};
  const auto encode = [&](Device device) {
    return models::T5(config, component.weights(), compute, device).encode(ids, lengths);
  };
  CHECK(apart(encode(Device::cuda), encode(Device::cpu)) < (compute == DType::f32 ? 1e-5 : 0.1));
}

// Which CUDA body of attention runs: cuDNN's, emulated here, must not be trusted with anything that
// our own kernels contradict, and whatever happens results are right.
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "cudnn_emulated.h"
#include "models/dit/fp8.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_choice.h"
#include "ops/attention/attention_fp8.h"
#include "ops/attention/partial_attention.h"
#include "ops/determinism.h"
#include "tensor/device.h"
#include "tensor/meta.h"
#include "tensors.h"

using namespace vfm;
using namespace vfm::ops;
using test::apart;

namespace {

std::vector<std::string> warnings;

// A test begins with an emulated cuDNN that is right. Shapes stay known: each test has its own.
test::EmulatedCudnn& fresh() {
  set_attention_body(AttentionBody::automatic);
  set_deterministic(false);
  warnings.clear();
  set_log_sink(
      [](LogLevel level, std::string_view message) {
        if (level == LogLevel::warning) warnings.emplace_back(message);
      },
      LogLevel::info);
  return test::emulated_cudnn() = {};
}

AttentionPack pack_of(std::vector<std::int64_t> lengths, int heads, int key_heads = 0) {
  AttentionPack pack;
  pack.query_lengths = pack.key_lengths = std::move(lengths);
  pack.heads = heads;
  pack.key_heads = key_heads == 0 ? heads : key_heads;
  pack.head_dim = 64;
  return pack;
}

struct Inputs {
  Tensor qkv, dout;
  Inputs(const AttentionPack& pack, Device device, DType dtype = DType::bf16) {
    std::int64_t rows = 0;
    for (const std::int64_t n : pack.query_lengths)
      rows += n;
    qkv = noise_tensor({rows, std::int64_t{pack.heads + 2 * pack.key_heads} * pack.head_dim}, 1,
                       dtype)
              .to(device);
    dout = noise_tensor({rows, std::int64_t{pack.heads} * pack.head_dim}, 2, dtype).to(device);
  }
};

// Output and gradient of `layers` calls whose outputs are added up: all run forward before the
// first runs backward.
std::pair<Tensor, Tensor> run(const AttentionPack& pack, Device device, int layers = 1,
                              DType dtype = DType::bf16) {
  const Inputs in(pack, device, dtype);
  Tape tape;
  const Tensor gradient = Tensor::zeros(in.qkv.shape(), DType::f32, device);
  tape.watch(in.qkv, gradient);
  std::vector<Tensor> outs;
  for (int i = 0; i < layers; ++i)
    outs.push_back(self_attention(tape, in.qkv, pack));
  const Tensor kept = outs.back().clone().to(Device::cpu).to(DType::f32);
  for (std::size_t i = 0; i + 1 < outs.size(); ++i)
    tape.accumulate(outs[i], in.dout.clone());
  tape.backward(outs.back(), in.dout.clone());
  return {kept, gradient.to(Device::cpu)};
}

void check_right(const AttentionPack& pack, int layers = 1) {
  const auto [out, gradient] = run(pack, Device::cuda, layers);
  const auto [expected_out, expected_gradient] = run(pack, Device::cpu, layers);
  CHECK(apart(out, expected_out) < 2e-2);
  CHECK(apart(gradient, expected_gradient) < 2e-2);
}

/// The dry run of a step on `account` tells the memory that the step takes.
template <class Step>
void check_memory(const MetaAccount& account, const Step& step) {
  step(Device::meta);
  reset_cuda_peak();
  const double before = static_cast<double>(cuda_memory().current);
  step(Device::cuda);
  const double taken = static_cast<double>(cuda_memory().peak) - before;
  CHECK(static_cast<double>(account.memory().peak) == Approx(taken).epsilon(0.03));
}

}  // namespace

TEST_CASE("cuDNN runs a shape forward and backward once its results were compared") {
  test::EmulatedCudnn& cudnn = fresh();
  check_right(pack_of({20, 33}, 2, 1), 2);
  CHECK(cudnn.forward_calls == 2);
  CHECK(cudnn.backward_calls == 2);
  CHECK(warnings.empty());
  // Not compared again: now it could do what it wants.
  cudnn.out_factor = 3;
  const AttentionPack same = pack_of({20, 33}, 2, 1);
  CHECK(apart(run(same, Device::cuda).first, run(same, Device::cpu).first) > 1);
}

TEST_CASE(
    "the memory that is counted is that of our own kernels, and of the comparison with them") {
  // Where heads share keys cuDNN's own room, which the emulated one does without, is larger.
  const auto [body, key_heads] = GENERATE(table<AttentionBody, int>(
      {{AttentionBody::automatic, 4}, {AttentionBody::own, 4}, {AttentionBody::own, 1}}));
  fresh();
  set_attention_body(body);
  const AttentionPack pack = pack_of({190, 333, 77}, 4, key_heads);
  const std::int64_t width = std::int64_t{4 + 2 * key_heads} * 64;
  const auto step = [&](Device device) {
    Tape tape;
    const Shape shape{600, width};
    const Tensor qkv = device == Device::meta ? Tensor(shape, DType::bf16, device)
                                              : noise_tensor(shape, 1, DType::bf16).to(device);
    tape.watch(qkv, Tensor::zeros(shape, DType::f32, device));
    const Tensor out = self_attention(tape, qkv, pack);
    tape.backward(out, out.clone());
  };
  const MetaAccount account(Device::cuda);
  check_memory(account, step);
  CHECK(warnings.empty());
}

TEST_CASE("keys in parts add up to all keys together, by cuDNN where it can") {
  test::EmulatedCudnn& cudnn = fresh();
  const DType dtype = GENERATE(DType::bf16, DType::f32);
  AttentionPack all = pack_of({20, 7, 150}, 4, 2);
  // The first part has no keys of the second sample, the second part none of the first.
  AttentionPack parts[2] = {all, all};
  parts[0].key_lengths = {20, 0, 100}, parts[1].key_lengths = {0, 9, 40};
  all.key_lengths = {20, 9, 140};
  const Tensor q = noise_tensor({177, 256}, 1, dtype), kv0 = noise_tensor({120, 256}, 2, dtype),
               kv1 = noise_tensor({49, 256}, 3, dtype), dout = noise_tensor({177, 256}, 4, dtype);
  const auto run_parts = [&](Device device) {
    AttentionSum sum;
    const Tensor queries = q.to(device), keys[2] = {kv0.to(device), kv1.to(device)};
    for (int i = 0; i < 2; ++i)
      sum.add(queries, keys[i], parts[i]);
    std::vector<Tensor> made = {sum.out(), sum.log_sum_exp()};
    for (int i = 0; i < 2; ++i) {
      const PartGradients part = attend_part_backward(
          queries, keys[i], parts[i], sum.out().to(dtype), sum.log_sum_exp(), dout.to(device));
      made.push_back(part.dkv.to(DType::f32));
      made.push_back(part.dq.to(DType::f32));
    }
    for (Tensor& tensor : made)
      tensor = tensor.to(Device::cpu);
    return made;
  };
  const std::vector<Tensor> found = run_parts(Device::cuda), expected = run_parts(Device::cpu);
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO(i);
    CHECK(apart(found[i], expected[i]) < (dtype == DType::f32 ? 1e-5 : 2e-2));
  }
  // And those of the CPU are the sample's own: the third one's, of all its keys.
  Tape silent(false);
  const Tensor third({140, 256}, dtype);
  copy(kv0.rows(20, 120), third.rows(0, 100));
  copy(kv1.rows(9, 49), third.rows(100, 140));
  AttentionPack one = pack_of({150}, 4, 2);
  one.key_lengths = {140};
  const Tensor whole = cross_attention(silent, q.rows(27, 177), third, one).to(DType::f32);
  CHECK(apart(found[0].rows(27, 177), whole) < (dtype == DType::f32 ? 1e-5 : 2e-2));
  CHECK(cudnn.forward_calls == (dtype == DType::f32 ? 0 : 2));
  CHECK(cudnn.backward_calls == (dtype == DType::f32 ? 0 : 2));
  CHECK(warnings.empty());
}

TEST_CASE("a wrong log-sum-exp of a part, or a wrong gradient, is not used") {
  test::EmulatedCudnn& cudnn = fresh();
  // Two heads for a wrong sum, three for a wrong gradient.
  const int heads = GENERATE(2, 3);
  cudnn.sums_off = heads == 2 ? 0.05f : 0.f;
  cudnn.dk_factor = heads == 3 ? 0.9f : 1.f;
  const AttentionPack pack = pack_of({90, 37}, heads);
  const std::int64_t width = heads * std::int64_t{64};
  const Tensor q = noise_tensor({127, width}, 1, DType::bf16),
               kv = noise_tensor({127, 2 * width}, 2, DType::bf16),
               dout = noise_tensor({127, width}, 3, DType::bf16);
  const auto run_part = [&](Device device) {
    const PartOfAttention part = attend_part(q.to(device), kv.to(device), pack);
    const PartGradients back =
        attend_part_backward(q.to(device), kv.to(device), pack, part.out.to(DType::bf16),
                             part.log_sum_exp, dout.to(device));
    return std::vector<Tensor>{part.out, part.log_sum_exp, back.dq, back.dkv};
  };
  const std::vector<Tensor> expected = run_part(Device::cpu);
  for (int again = 0; again < 2; ++again) {
    const std::vector<Tensor> found = run_part(Device::cuda);
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK(apart(found[i], expected[i]) < 2e-2);
  }
  CHECK(cudnn.forward_calls == 1);
  CHECK(cudnn.backward_calls == (heads == 2 ? 0 : 1));
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::StartsWith("a part of attention of 2 samples of 128 queries"));
  CHECK_THAT(warnings[0],
             Catch::Contains(heads == 2 ? "its log-sum-exp differs by" : "its dk differs by"));
  // By its name it is trusted, and cannot do everything.
  set_attention_body(AttentionBody::cudnn);
  run_part(Device::cuda);
  CHECK(cudnn.backward_calls == (heads == 2 ? 1 : 2));
  CHECK_THROWS_WITH(
      attend_part(q.to(DType::f32).to(Device::cuda), kv.to(DType::f32).to(Device::cuda), pack),
      Catch::Contains("it takes bf16 only"));
}

TEST_CASE("the memory that is counted for a part is what it takes") {
  const AttentionBody body = GENERATE(AttentionBody::automatic, AttentionBody::own);
  fresh();
  set_attention_body(body);
  const AttentionPack pack = pack_of({190, 333, 76}, 4);
  const auto step = [&](Device device) {
    const auto made = [&](std::int64_t width) {
      return device == Device::meta ? Tensor({599, width}, DType::bf16, device)
                                    : noise_tensor({599, width}, 1, DType::bf16).to(device);
    };
    const Tensor q = made(256), kv = made(512);
    const PartOfAttention part = attend_part(q, kv, pack);
    attend_part_backward(q, kv, pack, part.out.to(DType::bf16), part.log_sum_exp, made(256));
  };
  const MetaAccount account(Device::cuda);
  check_memory(account, step);
  // And the work is cuDNN's, or our own.
  for (const auto& [call, times] : account.calls())
    if (call.kind == WorkKind::attention) CHECK(call.cudnn == (body == AttentionBody::automatic));
  CHECK(account.kernels().contains("attention_turn") == (body == AttentionBody::automatic));
}

TEST_CASE("attention in FP8 by cuDNN is that of the CPU, from codes to the result") {
  test::EmulatedCudnn& cudnn = fresh();
  AttentionPack pack = pack_of({150, 150, 7, 40}, 4, 2);
  const Tensor qkv = noise_tensor({347, 512}, 1, DType::bf16),
               kv = noise_tensor({280, 256}, 2, DType::bf16);
  AttentionPack across = pack;
  across.key_lengths = {140, 140, 0, 0};
  const HeadKinds all{4, 2, 2, 64}, queries{.queries = 4, .head_dim = 64},
      keys{.keys = 2, .values = 2, .head_dim = 64};
  const auto run = [&](Device device) {
    const Tensor here = qkv.to(device), largest = largest_of_kinds(here, all);
    const Tensor q = noise_tensor({347, 256}, 3, DType::bf16).to(device);
    const Tensor codes = quantize_heads(here, all, largest);
    const Tensor parts({2, 3}, DType::i32, device);
    copy(largest_of_kinds(q, queries).reshape({1, 3}), parts.rows(0, 1));
    copy(largest_of_kinds(kv.to(device), keys).reshape({1, 3}), parts.rows(1, 2));
    const Tensor both = largest_of_parts(parts);
    std::vector<Tensor> made;
    for (const Tensor& one :
         {codes, restore_heads(codes, all, largest), self_attention_codes(codes, largest, pack),
          cross_attention_codes(quantize_heads(q, queries, both),
                                quantize_heads(kv.to(device), keys, both), both, across)})
      made.push_back(one.to(Device::cpu));
    return made;
  };
  cudnn.fp8_bf16 = GENERATE(false, true);
  const std::vector<Tensor> found = run(Device::cuda), expected = run(Device::cpu);
  for (const std::size_t i : {0, 1})
    CHECK(std::memcmp(found[i].raw(), expected[i].raw(), found[i].bytes()) == 0);
  for (const std::size_t i : {2, 3}) {
    // Where sums in another order decide a rounding; or the result is not rounded to FP8.
    const double error = apart(found[i].to(DType::f32), expected[i].to(DType::f32));
    INFO(error);
    CHECK(error < (cudnn.fp8_bf16 ? 0.07 : 5e-3));
    CHECK((error > 0.015) == cudnn.fp8_bf16);
  }
  // Two samples of one length are one call; those without keys none.
  CHECK(cudnn.fp8_calls == 3 + 1);
  for (const float zero : found[3].rows(300, 347).to(DType::f32).floats())
    REQUIRE(zero == 0);
  CHECK(warnings.empty());
}

TEST_CASE("what cuDNN does not compute in FP8 runs in bf16, and that is said once") {
  test::EmulatedCudnn& cudnn = fresh();
  const auto run = [](const AttentionPack& pack, Device device) {
    const Inputs in(pack, device);
    return self_attention_fp8(Tape(false), in.qkv, pack).to(Device::cpu).to(DType::f32);
  };
  const auto check = [&](const AttentionPack& pack) {
    const double error = apart(run(pack, Device::cuda), run(pack, Device::cpu));
    INFO(error);
    CHECK(error < 0.06);
    CHECK(error > 0.02);  // neither weights nor results were rounded
  };
  cudnn.fp8_fails = true;
  check(pack_of({31, 40}, 2));
  check(pack_of({31, 40}, 2));
  CHECK(cudnn.fp8_calls == 1);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] ==
        "attention in FP8 of 1 samples of 31 queries and 31 keys, 2 heads of 64 runs in bf16, not "
        "on cuDNN's: cuDNN has no engine for this graph");
  cudnn.fp8_fails = false;
  cudnn.fp8_factor = 1.3f;
  check(pack_of({32}, 2));
  check(pack_of({32}, 2));
  CHECK(cudnn.fp8_calls == 2);
  REQUIRE(warnings.size() == 2);
  CHECK_THAT(warnings[1], Catch::Contains("its output differs by"));
  // Once its results were right, it could do what it wants.
  cudnn.fp8_factor = 1;
  const AttentionPack trusted = pack_of({33}, 2);
  CHECK(apart(run(trusted, Device::cuda), run(trusted, Device::cpu)) < 5e-3);
  cudnn.fp8_factor = 1.3f;
  CHECK(apart(run(trusted, Device::cuda), run(trusted, Device::cpu)) > 0.2);
  cudnn.fp8_missing = "it is too old";
  check(pack_of({33}, 2));
  // What is sent to other ranks is rounded, as that of ranks whose cuDNN computes it.
  const HeadKinds kinds{2, 2, 2, 64};
  const auto sent = [&](Device device) {
    const Tensor qkv = Inputs(trusted, device).qkv, largest = largest_of_kinds(qkv, kinds);
    return self_attention_codes(quantize_heads(qkv, kinds, largest), largest, trusted, true);
  };
  CHECK(sent(Device::cuda).dtype() == DType::f8e4m3);
  cudnn.fp8_bf16 = true;
  CHECK(sent(Device::cuda).dtype() == DType::bf16);
  cudnn.fp8_bf16 = false;
  set_attention_body(AttentionBody::own);
  check(pack_of({33}, 2));
  CHECK(cudnn.fp8_calls == 4);
  CHECK(warnings.size() == 2);
}

TEST_CASE("packs that are filled up with empty samples are compared by themselves") {
  test::EmulatedCudnn& cudnn = fresh();
  check_right(pack_of({20, 21, 22, 23}, 2, 1));
  CHECK(warnings.empty());
  cudnn.out_factor = 3;
  check_right(pack_of({20, 21, 22}, 2, 1));
  CHECK(warnings.size() == 1);
}

TEST_CASE("before cuDNN takes empty samples, no pack is filled up, and it gets those with rows") {
  test::EmulatedCudnn& cudnn = fresh();
  cudnn.empty_samples = false;
  check_right(pack_of({20, 21, 22}, 4, 1));
  check_right(pack_of({20, 21, 22}, 4, 1));
  CHECK(cudnn.forward_calls == 2);
  check_right(pack_of({20, 0, 22}, 4, 1));
  CHECK(cudnn.forward_calls == 3);
  CHECK(warnings.empty());
}

TEST_CASE("a wrong output is not used, and cuDNN is not asked again for the shape") {
  test::EmulatedCudnn& cudnn = fresh();
  cudnn.out_factor = 1.05f;
  check_right(pack_of({25}, 3), 2);
  CHECK(cudnn.forward_calls == 1);
  CHECK(cudnn.backward_calls == 0);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::StartsWith("attention of 1 samples of 128 queries and 128 keys, "
                                            "3 heads of 64 runs on our own kernels"));
  CHECK_THAT(warnings[0], Catch::Contains("its output differs by"));
  cudnn.out_factor = 1;
  check_right(pack_of({25}, 3));
  CHECK(cudnn.forward_calls == 1);
  // Another shape has its own chance.
  check_right(pack_of({25}, 4));
  CHECK(cudnn.forward_calls == 2);
  CHECK(warnings.size() == 1);
}

TEST_CASE("of a long pack pieces are compared") {
  test::EmulatedCudnn& cudnn = fresh();
  AttentionPack pack = pack_of(std::vector<std::int64_t>(33, 64), 1);
  check_right(pack);
  CHECK(cudnn.backward_calls == 1);
  CHECK(warnings.empty());
  cudnn.out_factor = 1.05f;
  pack.causal = true;
  check_right(pack);
  CHECK(warnings.size() == 1);
}

TEST_CASE("NaN from cuDNN alone is a wrong output") {
  test::EmulatedCudnn& cudnn = fresh();
  cudnn.out_factor = std::nanf("");
  check_right(pack_of({25}, 5));
  CHECK(warnings.size() == 1);
}

TEST_CASE("a result of our own that is not finite decides nothing: the next call is compared") {
  test::EmulatedCudnn& cudnn = fresh();
  const AttentionPack pack = pack_of({25, 9}, 10);
  const auto run_with = [&](float q, float dout) {
    Inputs in(pack, Device::cpu, DType::f32);
    in.qkv.floats()[3] = q;
    in.dout.floats()[5] = dout;
    const Tensor qkv = in.qkv.to(DType::bf16).to(Device::cuda);
    Tape tape;
    const Tensor gradient = Tensor::zeros(qkv.shape(), DType::f32, Device::cuda);
    tape.watch(qkv, gradient);
    const Tensor out = self_attention(tape, qkv, pack);
    const Tensor kept = out.clone().to(Device::cpu).to(DType::f32);
    tape.backward(out, in.dout.to(DType::bf16).to(Device::cuda));
    return kept;
  };
  // Whatever cuDNN gives then, the call keeps our own.
  cudnn.out_factor = 3;
  const Tensor out = run_with(HUGE_VALF, 1);
  CHECK(std::isnan(out.floats()[0]));
  cudnn.out_factor = 1;
  CHECK(apart(out.rows(25, 34), run_with(0, HUGE_VALF).rows(25, 34)) < 2e-2);
  CHECK(cudnn.forward_calls == 2);
  CHECK(cudnn.backward_calls == 1);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::StartsWith("attention of 2 samples of 128 queries and 128 keys, "
                                            "10 heads of 64: our own output is not finite"));
  // Forward is trusted since the second call, backward is not.
  cudnn.dk_factor = 0.9f;
  check_right(pack);
  CHECK(cudnn.backward_calls == 2);
  REQUIRE(warnings.size() == 2);
  CHECK_THAT(warnings[1], Catch::Contains("its dk differs by"));
}

TEST_CASE("a wrong gradient is not used, nor those of layers that ran forward before") {
  test::EmulatedCudnn& cudnn = fresh();
  cudnn.dk_factor = 0.9f;
  check_right(pack_of({11, 40}, 3), 3);
  CHECK(cudnn.forward_calls == 3);
  CHECK(cudnn.backward_calls == 1);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::Contains("its dk differs by"));
  check_right(pack_of({11, 40}, 3));
  CHECK(cudnn.forward_calls == 3);
}

TEST_CASE("a shape that cuDNN has no engine for runs on our own kernels") {
  test::EmulatedCudnn& cudnn = fresh();
  cudnn.forward_fails = true;
  check_right(pack_of({30}, 6), 2);
  CHECK(cudnn.forward_calls == 1);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::EndsWith("cuDNN has no engine for this graph"));
  cudnn.forward_fails = false;
  cudnn.backward_fails = true;
  check_right(pack_of({30}, 7), 2);
  CHECK(cudnn.forward_calls == 3);
  CHECK(cudnn.backward_calls == 1);
  CHECK(warnings.size() == 2);
}

TEST_CASE("gradients of zero prove nothing: the next are compared") {
  test::EmulatedCudnn& cudnn = fresh();
  cudnn.dk_factor = 0.5f;
  const AttentionPack pack = pack_of({30}, 8);
  const Inputs in(pack, Device::cuda);
  Tape tape;
  const Tensor gradient = Tensor::zeros(in.qkv.shape(), DType::f32, Device::cuda);
  tape.watch(in.qkv, gradient);
  tape.backward(self_attention(tape, in.qkv, pack),
                Tensor::zeros(in.dout.shape(), DType::bf16, Device::cuda));
  CHECK(warnings.empty());
  check_right(pack);
  CHECK(cudnn.backward_calls == 2);
  CHECK(warnings.size() == 1);
}

TEST_CASE("the body that was asked for by name runs, or is an error") {
  test::EmulatedCudnn& cudnn = fresh();
  set_attention_body(AttentionBody::own);
  check_right(pack_of({21}, 2));
  CHECK(cudnn.forward_calls == 0);

  // By name it is trusted.
  set_attention_body(AttentionBody::cudnn);
  cudnn.out_factor = 3;
  const AttentionPack pack = pack_of({21}, 9);
  CHECK(apart(run(pack, Device::cuda).first, run(pack, Device::cpu).first) > 1);
  CHECK(warnings.empty());
  cudnn.forward_fails = true;
  CHECK_THROWS_WITH(run(pack, Device::cuda), "cuDNN has no engine for this graph");
  cudnn.forward_fails = false;
  CHECK_THROWS_WITH(run(pack, Device::cuda, 1, DType::f32),
                    Catch::Contains("cuDNN cannot run this attention: it takes bf16 only"));
  set_deterministic(true);
  CHECK_THROWS_WITH(run(pack, Device::cuda), Catch::Contains("not deterministic"));
  set_deterministic(false);
  cudnn.missing = "this GPU is older than Hopper";
  CHECK_THROWS_WITH(run(pack, Device::cuda), Catch::Contains("this GPU is older than Hopper"));
}

TEST_CASE("a model's attention is in FP8 where cuDNN computes it so, else in bf16, which is told") {
  test::EmulatedCudnn& cudnn = fresh();
  const models::Fp8Parts both{.linear = true, .attention = true};
  using models::running_in_fp8;
  for (const Device device : {Device::cuda, Device::cpu, Device::meta})
    CHECK(running_in_fp8(both, device, true).attention);
  set_deterministic(true);  // forward is
  CHECK(running_in_fp8(both, Device::cuda, true).attention);
  set_deterministic(false);
  CHECK(warnings.empty());
  set_attention_body(AttentionBody::own);
  CHECK_FALSE(running_in_fp8(both, Device::cuda, true).attention);
  CHECK(running_in_fp8(both, Device::cpu, true).attention);
  set_attention_body(AttentionBody::automatic);
  cudnn.missing = "this GPU is older than Hopper";
  CHECK_FALSE(running_in_fp8(both, Device::cuda, true).attention);
  CHECK(running_in_fp8(both, Device::cuda, false).linear);
  running_in_fp8({.linear = true}, Device::cuda, true);
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[1] ==
        "attention stays in bf16: in FP8 it is cuDNN's, and this GPU is older than Hopper");
}

TEST_CASE("what cuDNN cannot do, and what must be deterministic, it is not asked for") {
  test::EmulatedCudnn& cudnn = fresh();
  set_deterministic(true);
  check_right(pack_of({22}, 2));
  set_deterministic(false);
  AttentionPack narrow = pack_of({22}, 2);
  narrow.head_dim = 32;
  check_right(narrow);
  cudnn.missing = "no driver";
  check_right(pack_of({22}, 3));
  CHECK(cudnn.forward_calls == 0);
  CHECK(warnings.empty());
}

// The ops in FP8 on the CPU: rounding by the definition, products and attention against double, and
// what they refuse.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/float8.h"
#include "ops/attention/attention_fp8.h"
#include "ops/check.h"
#include "ops/matmul/gemm.h"
#include "ops/matmul/linear.h"
#include "ops/matmul/linear_fp8.h"
#include "ops/matmul/quantize.h"
#include "ops/norm/modulate.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/join.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

Tensor restored(const Quantized& q) {
  Tensor wide(q.values.shape());
  for (std::int64_t i = 0; i < wide.elements(); ++i)
    wide.data<float>()[i] =
        f8e4m3_to_float(q.values.data<std::uint8_t>()[i]) * q.scale.data<float>()[0];
  return wide;
}

// The size of the difference, as a part of that of b.
double apart(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(DType::f32), y = b.to(DType::f32);
  REQUIRE(x.elements() == y.elements());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < x.floats().size(); ++i) {
    difference += std::pow(double{x.floats()[i]} - y.floats()[i], 2);
    size += std::pow(double{y.floats()[i]}, 2);
  }
  return std::isnan(difference) ? 1e30 : std::sqrt(difference / size);
}

std::vector<double> product(const Tensor& x, const Tensor& w) {
  std::vector<double> y;
  for (std::int64_t i = 0; i < x.size(0); ++i)
    for (std::int64_t j = 0; j < w.size(0); ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < x.size(1); ++k)
        sum += double{x.data<float>()[i * x.size(1) + k]} * w.data<float>()[j * x.size(1) + k];
      y.push_back(sum);
    }
  return y;
}

void check_same(const Quantized& a, const Quantized& b) {
  REQUIRE(a.values.shape() == b.values.shape());
  CHECK(std::memcmp(a.values.raw(), b.values.raw(), a.values.bytes()) == 0);
  CHECK(a.scale.floats()[0] == b.scale.floats()[0]);
}

Tensor as_tensor(const std::vector<double>& values, Shape shape) {
  const std::vector<float> floats(values.begin(), values.end());
  return Tensor::from(floats, std::move(shape));
}

}  // namespace

TEST_CASE("a quantised tensor is within half a step of what it was, whatever its range") {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const float size : {1e-20f, 1e-3f, 1.f, 1e20f}) {
      Tensor x = noise_tensor({70, 100}, 3);  // odd, and several threads' worth of bf16
      for (float& v : x.floats())
        v *= size;
      x = x.to(dtype);
      const Quantized q = quantize(x);
      CHECK(q.values.dtype() == DType::f8e4m3);
      CHECK(q.values.shape() == x.shape());
      const Tensor before = x.to(DType::f32), after = restored(q);
      float largest = 0;
      for (const float v : before.floats())
        largest = std::max(largest, std::abs(v));
      CHECK(q.scale.floats()[0] == std::max(largest, 0x1p-40f) / 448);
      const double step = q.scale.floats()[0] * 0x1p-10;  // half a step of the smallest values
      for (std::size_t i = 0; i < before.floats().size(); ++i) {
        const double v = before.floats()[i];
        REQUIRE(std::abs(after.floats()[i] - v) <= std::max(std::abs(v) / 15.9, step * 1.001));
      }
    }
}

TEST_CASE("zeros stay zeros; NaN and infinity are not overlooked") {
  const Quantized zeros = quantize(Tensor::zeros({4, 16}));
  CHECK(zeros.scale.floats()[0] > 0);
  for (const float v : restored(zeros).floats())
    CHECK(v == 0);
  CHECK(quantize(Tensor({0, 16})).values.elements() == 0);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    Tensor x = noise_tensor({3, 16}, 1);
    x.floats()[20] = bad;
    const Quantized q = quantize(x);
    CHECK(std::isnan(q.scale.floats()[0]));
    for (const float v : restored(q).floats())
      CHECK(std::isnan(v));
  }
  CHECK_THROWS_AS(quantize(Tensor({3}, DType::i32)), Error);
}

TEST_CASE("heads that went through FP8 go through it again as they are, each kind with its scale") {
  const HeadKinds kinds{2, 1, 1, 64};
  const Tensor wide = noise_tensor({14, 4 * 64}, 7);
  for (std::int64_t i = 0; i < 14; ++i)
    for (std::int64_t d = 128; d < 192; ++d)
      wide.data<float>()[i * 256 + d] *= 100;  // keys
  const Tensor qkv = wide.to(DType::bf16);
  const Tensor largest = largest_of_kinds(qkv, kinds);
  const Tensor codes = quantize_heads(qkv, kinds, largest);
  const Tensor restored = restore_heads(codes, kinds, largest);
  const Tensor again = quantize_heads(restored, kinds, largest_of_kinds(restored, kinds));
  CHECK(std::memcmp(codes.raw(), again.raw(), codes.bytes()) == 0);
  CHECK(std::memcmp(qkv.raw(), restored.raw(), qkv.bytes()) != 0);
  CHECK(apart(restored, qkv) < 0.03);
  const auto bits = [](const Tensor& t, int i) { return t.data<std::int32_t>()[i]; };
  CHECK(bits(largest, 1) > bits(largest, 0));
  // Parts: of the first rows, and of the others without queries.
  const Tensor parts({2, 3}, DType::i32);
  copy(largest_of_kinds(qkv.rows(0, 5), kinds).reshape({1, 3}), parts.rows(0, 1));
  copy(largest_of_kinds(qkv.rows(5, 14), kinds).reshape({1, 3}), parts.rows(1, 2));
  CHECK(std::memcmp(largest_of_parts(parts).raw(), largest.raw(), 12) == 0);
  CHECK(bits(largest_of_kinds(qkv, {.keys = 3, .values = 1, .head_dim = 64}), 0) == 0);
  CHECK(bits(largest_of_kinds(qkv.rows(0, 0), kinds), 2) == 0);
  CHECK_THROWS_AS(largest_of_kinds(qkv, {1, 1, 1, 64}), Error);
  CHECK_THROWS_AS(largest_of_kinds(qkv, {16, 8, 8, 8}), Error);
  CHECK_THROWS_AS(largest_of_parts(largest), Error);
  CHECK_THROWS_AS(quantize_heads(qkv, kinds, parts), Error);
}

TEST_CASE("attention of codes: some queries over all keys are as in self-attention, to the bit") {
  AttentionPack pack;
  pack.heads = 4, pack.key_heads = 2, pack.head_dim = 64;
  pack.query_lengths = pack.key_lengths = {200, 20};
  const HeadKinds kinds{4, 2, 2, 64};
  const Tensor qkv = noise_tensor({220, 512}, 5, DType::bf16);
  const Tensor largest = largest_of_kinds(qkv, kinds), codes = quantize_heads(qkv, kinds, largest);
  const Tensor wanted = self_attention_fp8(Tape(false), qkv, pack);
  CHECK(distance(self_attention_codes(codes, largest, pack), wanted) == 0);
  const Tensor sent = self_attention_codes(codes, largest, pack, true);
  CHECK(sent.dtype() == DType::f8e4m3);
  CHECK(distance(restore_heads(sent, {.values = 4, .head_dim = 64}, largest), wanted) == 0);
  const Tensor q({220, 256}, DType::f8e4m3), kv({220, 256}, DType::f8e4m3);
  copy_columns(codes, 0, q, 0, 256), copy_columns(codes, 256, kv, 0, 256);
  CHECK(distance(cross_attention_codes(q, kv, largest, pack), wanted) == 0);
  AttentionPack some = pack;
  some.query_lengths = {30, 0};
  CHECK(distance(cross_attention_codes(q.rows(70, 100), kv, largest, some), wanted.rows(70, 100)) ==
        0);
  some.key_lengths = {200, 0}, some.query_lengths = {0, 20};
  for (const float zero : cross_attention_codes(q.rows(200, 220), kv.rows(0, 200), largest, some)
                              .to(DType::f32)
                              .floats())
    REQUIRE(zero == 0);
  CHECK_THROWS_AS(cross_attention_codes(q, kv, largest, some), Error);
  CHECK_THROWS_AS(self_attention_codes(qkv, largest, pack), Error);
  CHECK_THROWS_WITH(self_attention_codes(codes, largest.reshape({1, 3}), pack),
                    Catch::Contains("largest magnitudes of three kinds"));
  pack.causal = true;
  CHECK_THROWS_WITH(self_attention_codes(codes, largest, pack), Catch::Contains("causal"));
}

TEST_CASE("gelu and modulate to FP8 are gelu and modulate, and then quantised, to the bit") {
  Tape silent(false);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Shape& shape : {Shape{70, 100}, Shape{3, 16}, Shape{0, 16}}) {
      const Tensor x = noise_tensor(shape, 3, dtype);
      check_same(quantize_gelu(x), quantize(activate(silent, x, ActivationKind::gelu)));
    }
    for (const bool adds : {true, false})
      for (const bool centred : {true, false}) {
        ModulateInput in;
        in.x = noise_tensor({90, 48}, 1), in.out = dtype, in.centred = centred;
        in.modulation = noise_tensor({3, 144}, 4);
        if (adds)
          in.branch = noise_tensor({90, 48}, 2, dtype), in.extra = noise_tensor({90, 48}, 3);
        if (adds) in.gate = in.modulation, in.gate_column = 96;
        std::vector<std::int32_t> rows(90);
        for (std::size_t i = 0; i < rows.size(); ++i)
          rows[i] = static_cast<std::int32_t>(i / 31);
        in.rows = RowMap(rows, Device::cpu);
        const Modulated two = gated_residual_layernorm_modulate(silent, in);
        const ModulatedFp8 one = gated_residual_layernorm_modulate_fp8(silent, in);
        check_same(one.normed, quantize(two.normed));
        CHECK((one.stream.id() == in.x.id()) == !adds);
        CHECK(distance(one.stream, two.stream) == 0);
        CHECK_THROWS_WITH(gated_residual_layernorm_modulate_fp8(Tape(), in),
                          Catch::Contains("no gradient"));
        rows[5] = 3;
        in.rows = RowMap(rows, Device::cpu);
        CHECK_THROWS_WITH(gated_residual_layernorm_modulate_fp8(silent, in),
                          Catch::Contains("row 3 of 3"));
      }
  }
  CHECK_THROWS_AS(quantize_gelu(Tensor({3}, DType::i32)), Error);
}

TEST_CASE("linear_fp8 is the product of what was rounded, and near that of what was there") {
  const Tape tape(false);
  Tape silent(false);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = noise_tensor({37, 96}, 1, dtype), w = noise_tensor({48, 96}, 2, dtype);
    const Quantized low = quantize(w);
    const Tensor y = linear_fp8(tape, x, low);
    CHECK(y.dtype() == dtype);
    CHECK(y.shape() == Shape{37, 48});
    for (const DType out : {DType::f32, DType::bf16})
      CHECK(distance(linear_fp8(tape, quantize(x), low, out), y.to(out)) < 4e-3);
    const Tensor given = linear_fp8(tape, quantize(x), low, dtype);
    CHECK(std::memcmp(given.raw(), y.raw(), y.bytes()) == 0);
    const Tensor exact = as_tensor(product(restored(quantize(x)), restored(low)), y.shape());
    CHECK(distance(y, exact) < (dtype == DType::f32 ? 2e-6 : 4e-3));
    // Two factors, each 0.026 off in the mean square.
    CHECK(apart(y, linear(silent, x, w)) < 0.045);
    CHECK(apart(y, linear(silent, x, w)) > 0.02);
  }
  CHECK(linear_fp8(tape, Tensor({0, 96}), quantize(noise_tensor({48, 96}, 2))).elements() == 0);
}

TEST_CASE("products in FP8 refuse what the GPU has not, on any device, and gradients") {
  Tape recording;
  const Tape tape(false);
  const Tensor x = noise_tensor({4, 32}, 1);
  const Quantized w = quantize(noise_tensor({16, 32}, 2));
  CHECK_THROWS_WITH(linear_fp8(recording, x, w), Catch::Contains("no gradient"));
  CHECK_THROWS_WITH(linear_fp8(recording, quantize(x), w, DType::f32),
                    Catch::Contains("no gradient"));
  CHECK_THROWS_WITH(linear_fp8(tape, quantize(noise_tensor({4, 48}, 1)), w, DType::f32),
                    Catch::Contains("does not fit"));
  CHECK_THROWS_WITH(linear_fp8(tape, noise_tensor({4, 24}, 1), quantize(noise_tensor({16, 24}, 2))),
                    Catch::Contains("multiples of 16"));
  CHECK_THROWS_AS(linear_fp8(tape, noise_tensor({4, 48}, 1), w), Error);
  CHECK(why_no_fp8_product({16, 32}).empty());
  CHECK_FALSE(why_no_fp8_product({17, 32}).empty());

  const Quantized low = quantize(x);
  const Tensor y({4, 16});
  const Matrix a{low.values.raw(), DType::f8e4m3, 32, false, low.scale.data<float>()};
  const Matrix b{w.values.raw(), DType::f8e4m3, 32, true, w.scale.data<float>()};
  gemm(Device::cpu, 4, 16, 32, a, b, y.raw(), DType::f32, 16, false);
  CHECK_THROWS_AS(gemm(Device::cpu, 4, 16, 32, a, b, y.raw(), DType::f32, 16, true), Error);
  Matrix wrong = b;
  wrong.scale = nullptr;
  CHECK_THROWS_AS(gemm(Device::cpu, 4, 16, 32, a, wrong, y.raw(), DType::f32, 16, false), Error);
  wrong = b;
  wrong.transposed = false;
  CHECK_THROWS_AS(gemm(Device::cpu, 4, 16, 32, a, wrong, y.raw(), DType::f32, 16, false), Error);
  wrong = b;
  wrong.dtype = DType::f32;
  CHECK_THROWS_AS(gemm(Device::cpu, 4, 16, 32, a, wrong, y.raw(), DType::f32, 16, false), Error);
}

TEST_CASE("attention in FP8 is near that in f32, for packs and heads that share keys") {
  Tape tape(false);
  for (const int dim : {64, 128})
    for (const int key_heads : {1, 2}) {
      AttentionPack pack;
      pack.query_lengths = pack.key_lengths = {33, 0, 300, 1};
      pack.heads = 2, pack.key_heads = key_heads, pack.head_dim = dim;
      const Tensor qkv = noise_tensor({334, (2 + 2 * key_heads) * dim}, 7, DType::bf16);
      const Tensor out = self_attention_fp8(tape, qkv, pack);
      CHECK(out.dtype() == DType::bf16);
      const double error = apart(out, self_attention(tape, qkv.to(DType::f32), pack));
      INFO(error);
      CHECK(error < 0.07);  // values, weights, results and both factors of a score, 0.026 each
      CHECK(error > 0.03);
    }
}

TEST_CASE("attention in FP8: equal weights give the mean of the codes, rounded once") {
  Tape tape(false);
  AttentionPack pack;
  pack.query_lengths = pack.key_lengths = {300, 25};
  pack.heads = pack.key_heads = 1, pack.head_dim = 64;
  Tensor qkv = noise_tensor({325, 192}, 7);
  for (std::int64_t i = 0; i < 325; ++i)
    for (std::int64_t d = 0; d < 192; ++d) {
      float& v = qkv.data<float>()[i * 192 + d];
      if (d < 64) v = 0;
      if (d >= 128) v = static_cast<float>((i * 31 + d * 7) % 17 - 8);
      if (d == 128 && i == 0) v = 448;  // the scale is 1
    }
  const Tensor out = self_attention_fp8(tape, qkv.to(DType::bf16), pack).to(DType::f32);
  for (std::int64_t d = 0; d < 64; ++d) {
    float sum = 0;
    for (std::int64_t i = 0; i < 300; ++i)
      sum += qkv.data<float>()[i * 192 + 128 + d];
    CHECK(out.data<float>()[64 + d] == f8e4m3_to_float(float_to_f8e4m3(sum / 300)));
  }
  // A scale is that of all samples.
  for (const std::int64_t at : {3, 70, 130}) {
    Tensor damaged = qkv.clone();
    damaged.data<float>()[310 * 192 + at] = std::numeric_limits<float>::infinity();
    const Tensor all = self_attention_fp8(tape, damaged.to(DType::bf16), pack).to(DType::f32);
    for (const float v : all.floats())
      REQUIRE(std::isnan(v));
  }
}

TEST_CASE("attention in FP8 refuses gradients, other head sizes and other types") {
  Tape recording, tape(false);
  AttentionPack pack;
  pack.query_lengths = pack.key_lengths = {4};
  pack.heads = pack.key_heads = 1, pack.head_dim = 64;
  const Tensor qkv = noise_tensor({4, 192}, 1, DType::bf16);
  CHECK_THROWS_WITH(self_attention_fp8(recording, qkv, pack), Catch::Contains("no gradient"));
  CHECK_THROWS_AS(self_attention_fp8(tape, qkv.to(DType::f32), pack), Error);
  CHECK_THROWS_AS(self_attention_fp8(tape, noise_tensor({5, 192}, 1, DType::bf16), pack), Error);
  pack.head_dim = 32;
  CHECK_THROWS_WITH(self_attention_fp8(tape, noise_tensor({4, 96}, 1, DType::bf16), pack),
                    Catch::Contains("64 or 128"));
}

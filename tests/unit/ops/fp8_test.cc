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

TEST_CASE(
    "heads that went through FP8 go through it again as they are, and attention sees no change") {
  AttentionPack pack;
  pack.heads = 2, pack.key_heads = 1, pack.head_dim = 64;
  pack.query_lengths = pack.key_lengths = {9, 0, 5};
  const HeadLayout layout{pack.query_lengths, pack.head_dim};
  const Tensor qkv = noise_tensor({14, 4 * 64}, 7).to(DType::bf16);
  const Tensor largest = largest_of_heads(qkv, layout);
  const Tensor codes = quantize_heads(qkv, layout, largest);
  const Tensor restored = restore_heads(codes, layout, largest);
  const Tensor again = quantize_heads(restored, layout, largest_of_heads(restored, layout));
  CHECK(std::memcmp(codes.raw(), again.raw(), codes.bytes()) == 0);
  CHECK(std::memcmp(qkv.raw(), restored.raw(), qkv.bytes()) != 0);
  Tape silent(false);
  const Tensor wanted = self_attention_fp8(silent, qkv, pack),
               got = self_attention_fp8(silent, restored, pack);
  CHECK(std::memcmp(wanted.raw(), got.raw(), wanted.bytes()) == 0);
  // Of a sample without rows nothing is known.
  CHECK(largest.data<std::int32_t>()[4] == 0);
  CHECK_THROWS_AS(largest_of_heads(qkv, {{14}, 24}), Error);
  CHECK_THROWS_AS(largest_of_heads(qkv, {{13}, 64}), Error);
  CHECK_THROWS_AS(quantize_heads(qkv, layout, largest.rows(0, 2)), Error);
  // Of the first rows of each sample, and of the others: together those of all.
  const HeadLayout parts{{5, 0, 1, 4, 0, 4}, pack.head_dim};
  const Tensor sorted(qkv.shape(), DType::bf16);
  copy(qkv.rows(0, 5), sorted.rows(0, 5)), copy(qkv.rows(9, 10), sorted.rows(5, 6));
  copy(qkv.rows(5, 9), sorted.rows(6, 10)), copy(qkv.rows(10, 14), sorted.rows(10, 14));
  const Tensor found = largest_of_parts(largest_of_heads(sorted, parts), 3);
  CHECK(found.shape() == largest.shape());
  CHECK(std::memcmp(found.raw(), largest.raw(), largest.bytes()) == 0);
  CHECK_THROWS_AS(largest_of_parts(largest.rows(0, 2), 3), Error);
}

TEST_CASE("parts of attention in FP8, with the magnitudes of all, are attention in FP8 over all") {
  AttentionPack pack;
  pack.heads = 4, pack.key_heads = 2, pack.head_dim = 64;
  pack.query_lengths = pack.key_lengths = {90, 20};
  const std::int64_t width = 4 * 64, key_width = 2 * 2 * 64;
  const Tensor qkv = noise_tensor({110, width + key_width}, 5).to(DType::bf16);
  const Tensor q({110, width}, DType::bf16), kv({110, key_width}, DType::bf16);
  for (std::int64_t i = 0; i < 110; ++i) {
    const Tensor row = qkv.rows(i, i + 1).reshape({width + key_width, 1});
    copy(row.rows(0, width).reshape({1, width}), q.rows(i, i + 1));
    copy(row.rows(width, width + key_width).reshape({1, key_width}), kv.rows(i, i + 1));
  }
  const Tensor largest = largest_of_heads(qkv, {pack.key_lengths, 64});
  const Tensor wanted = self_attention_fp8(Tape(false), qkv, pack);
  const PartOfAttention all = attend_part_fp8(q, kv, pack, largest, DType::bf16);
  CHECK(std::memcmp(all.out.raw(), wanted.raw(), wanted.bytes()) == 0);
  const PartOfAttention exact = attend_part_fp8(q, kv, pack, largest, DType::f32);
  CHECK(apart(exact.out, wanted) < 3e-3);
  // Keys 0 to 30 of the first sample, and then the others: of the second sample none, and all.
  AttentionPack first = pack, rest = pack;
  first.key_lengths = {31, 0}, rest.key_lengths = {59, 20};
  AttentionSum sum;
  sum.add(attend_part_fp8(q, kv.rows(0, 31), first, largest, DType::f32), first);
  sum.add(attend_part_fp8(q, kv.rows(31, 110), rest, largest, DType::f32), rest);
  CHECK(apart(sum.out(), exact.out) < 1e-4);
  CHECK(apart(sum.log_sum_exp(), exact.log_sum_exp) < 1e-5);
  // The logarithm of the sum below the fraction, but for what rounding does to that.
  CHECK(apart(exact.log_sum_exp, attend_part(q, kv, pack).log_sum_exp) < 0.01);
  CHECK_THROWS_WITH(attend_part_fp8(q, kv, pack, largest.rows(0, 1), DType::f32),
                    Catch::Contains("magnitudes of 4 and twice 2 heads in 2 samples"));
  CHECK_THROWS_AS(attend_part_fp8(q, kv, first, largest, DType::f32), Error);
  pack.causal = true;
  CHECK_THROWS_AS(attend_part_fp8(q, kv, pack, largest, DType::f32), Error);
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

TEST_CASE("attention in FP8 is near that in bf16, for packs, heads that share keys, and causal") {
  Tape tape(false);
  for (const int dim : {64, 128})
    for (const bool causal : {false, true})
      for (const int key_heads : {1, 2}) {
        AttentionPack pack;
        pack.query_lengths = pack.key_lengths = {33, 0, 70, 1};
        pack.heads = 2, pack.key_heads = key_heads, pack.head_dim = dim, pack.causal = causal;
        const Tensor qkv = noise_tensor({104, (2 + 2 * key_heads) * dim}, 7, DType::bf16);
        const Tensor out = self_attention_fp8(tape, qkv, pack);
        CHECK(out.dtype() == DType::bf16);
        const double error = apart(out, self_attention(tape, qkv, pack));
        INFO(error);
        CHECK(error < 0.065);  // values, weights and both factors of a score, 0.026 each
        CHECK(error > 0.01);
      }
}

TEST_CASE("attention in FP8: equal weights are exactly equal, and a sample knows no other") {
  Tape tape(false);
  AttentionPack pack;
  pack.query_lengths = pack.key_lengths = {40, 25};
  pack.heads = pack.key_heads = 1, pack.head_dim = 64;
  Tensor qkv = noise_tensor({65, 192}, 7);
  for (std::int64_t i = 0; i < 65; ++i)
    for (std::int64_t d = 0; d < 192; ++d) {
      float& v = qkv.data<float>()[i * 192 + d];
      if (d < 64) v = 0;
      if (d >= 128) v = static_cast<float>((i * 31 + d * 7) % 17 - 8);
      if (d == 128 && (i == 0 || i == 40)) v = 448;  // the scale is 1
    }
  const Tensor out = self_attention_fp8(tape, qkv.to(DType::bf16), pack).to(DType::f32);
  for (std::int64_t d = 0; d < 64; ++d) {
    double sum = 0;
    for (std::int64_t i = 0; i < 40; ++i)
      sum += qkv.data<float>()[i * 192 + 128 + d];
    CHECK(out.data<float>()[64 + d] == Approx(sum / 40).epsilon(0x1p-8));
  }
  qkv.data<float>()[50 * 192 + 130] = std::numeric_limits<float>::infinity();
  const Tensor damaged = self_attention_fp8(tape, qkv.to(DType::bf16), pack).to(DType::f32);
  for (std::int64_t i = 0; i < 65 * 64; ++i) {
    const float v = damaged.data<float>()[i];
    REQUIRE((i < 40 * 64 ? v == out.data<float>()[i] : std::isnan(v)));
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

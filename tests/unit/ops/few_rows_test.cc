// What writes texts together: products of few rows, and attention of newest tokens. Their values,
// and that a row has the bits that it has alone.
// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/few_rows.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "ops/attention/newest_query.h"
#include "ops/cpu/isa.h"
#include "ops/matmul/block_rows.h"
#include "ops/matmul/quantize.h"
#include "support/noise.h"
#include "tensor/kernel_log.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

/// Runs `check` for each instruction set that this machine has.
template <class Check>
void for_each_isa(const Check& check) {
  for (const Isa limit : {Isa::base, Isa::avx2, Isa::avx512}) {
    limit_isa(limit);
    if (isa() == limit) check();
  }
  limit_isa(Isa::amx);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

/// The farthest from sums in double, of matrices `w` of numbers.
double farthest_of(const Tensor& y, const Tensor& x, const Tensor& w, const Tensor& bias) {
  const std::int64_t in = x.size(1), out = w.size(0);
  double most = 0;
  for (std::int64_t row = 0; row < x.size(0); ++row)
    for (std::int64_t o = 0; o < out; ++o) {
      double sum = bias.defined() ? bias.data<float>()[o] : 0;
      for (std::int64_t i = 0; i < in; ++i)
        sum += double{x.data<float>()[row * in + i]} * w.data<float>()[o * in + i];
      most = std::max(most, std::abs(sum - y.data<float>()[row * out + o]));
    }
  return most;
}

}  // namespace

TEST_CASE("products of few rows are those of the numbers as they are stored") {
  for_each_isa([] {
    for (const std::int64_t in : {1, 15, 48, 131})
      for (const std::int64_t out : {1, 5, 37}) {
        const Tensor x = noise_tensor({7, in}, 1), wide = noise_tensor({out, in}, 2);
        const Tensor bias = noise_tensor({out}, 3);
        INFO("isa " << static_cast<int>(isa()) << " in " << in << " out " << out);
        for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
          const Tensor w = wide.to(type), numbers = w.to(DType::f32);
          CHECK(farthest_of(few_rows(x, w, {}, {}), x, numbers, {}) < 1e-4);
          CHECK(farthest_of(few_rows(x, w, {}, bias), x, numbers, bias) < 1e-4);
        }
        const QuantizedRows rows = quantize_rows(wide, largest_of_rows(wide), RowFormat::int8);
        const Tensor numbers = dequantize_rows(rows, DType::f32);
        CHECK(farthest_of(few_rows(x, rows.values, rows.scales, bias), x, numbers, bias) < 1e-4);
      }
  });
}

TEST_CASE("halves of any size are what they are in products of few rows") {
  const std::vector<float> values{0x1p-24f, -0x1.8p-23f, 0x1p-14f, 65504, -1, 0, 0x1.ff8p-15f, 2};
  const Tensor w = Tensor::from(values, {8, 1}).to(DType::f16);
  const Tensor one = Tensor::from(std::vector{1.f}, {1, 1});
  const float infinite = std::numeric_limits<float>::infinity();
  const Tensor odd = Tensor::from(std::vector{infinite, -infinite, std::nanf("")}, {3, 1});
  for_each_isa([&] {
    const Tensor y = few_rows(one, w, {}, {});
    CHECK(std::vector<float>(y.floats().begin(), y.floats().end()) == values);
    const Tensor z = few_rows(one, odd.to(DType::f16), {}, {});
    CHECK(z.floats()[0] == infinite);
    CHECK(z.floats()[1] == -infinite);
    CHECK(std::isnan(z.floats()[2]));
  });
}

TEST_CASE("a row of a product of few rows has the bits that it has alone") {
  const Tensor x = noise_tensor({kFewRows, 203}, 4), wide = noise_tensor({90, 203}, 5);
  const Tensor bias = noise_tensor({90}, 6);
  const QuantizedRows coded = quantize_rows(wide, largest_of_rows(wide), RowFormat::int8);
  const auto check = [&](const Tensor& w, const Tensor& scales) {
    std::vector<Tensor> alone;
    for (std::int64_t row = 0; row < kFewRows; ++row)
      alone.push_back(few_rows(x.rows(row, row + 1), w, scales, bias));
    for (std::int64_t begin = 0; begin < kFewRows; ++begin)
      for (std::int64_t end = begin + 1; end <= kFewRows; ++end) {
        const Tensor y = few_rows(x.rows(begin, end), w, scales, bias);
        for (std::int64_t row = begin; row < end; ++row)
          if (!same_bits(y.rows(row - begin, row - begin + 1),
                         alone[static_cast<std::size_t>(row)]))
            FAIL(dtype_name(w.dtype()) << ": row " << row << " of " << begin << " to " << end);
      }
  };
  for_each_isa([&] {
    for (const DType type : {DType::f32, DType::bf16, DType::f16})
      check(wide.to(type), {});
    check(coded.values, coded.scales);
  });
}

namespace {

void check_newest(int heads, int key_heads, int head_dim) {
  INFO(heads << " heads of " << head_dim << " and " << key_heads << " of keys");
  const int served = heads / key_heads;
  const std::vector<std::int64_t> seen{1, 33, 7, 130};
  const Tensor q = noise_tensor({4, heads * head_dim}, 7);
  for (const DType type : {DType::f32, DType::bf16})
    for_each_isa([&] {
      std::vector<SeenKeys> texts;
      for (std::size_t i = 0; i < seen.size(); ++i)
        texts.push_back({noise_tensor({seen[i] + 3, 2 * key_heads * head_dim},
                                      static_cast<std::uint64_t>(i) + 8)
                             .to(type),
                         seen[i]});
      const Tensor all = newest_query(q, texts, heads, key_heads);
      for (std::size_t text = 0; text < seen.size(); ++text) {
        const auto row = static_cast<std::int64_t>(text);
        const Tensor alone =
            newest_query(q.rows(row, row + 1), std::span(&texts[text], 1), heads, key_heads);
        CHECK(same_bits(alone, all.rows(row, row + 1)));
        const Tensor kv = texts[text].kv.to(DType::f32);
        for (int head = 0; head < heads; ++head) {
          const float* query = q.data<float>() + (row * heads + head) * head_dim;
          std::vector<double> weights;
          double total = 0;
          const auto at = [&](std::int64_t key, int part, int d) {
            return double{
                kv.data<float>()[((key * 2 + part) * key_heads + head / served) * head_dim + d]};
          };
          for (std::int64_t key = 0; key < seen[text]; ++key) {
            double score = 0;
            for (int d = 0; d < head_dim; ++d)
              score += query[d] * at(key, 0, d);
            weights.push_back(std::exp(score / std::sqrt(head_dim)));
            total += weights.back();
          }
          for (int d = 0; d < head_dim; ++d) {
            double sum = 0;
            for (std::int64_t key = 0; key < seen[text]; ++key)
              sum += weights[static_cast<std::size_t>(key)] / total * at(key, 1, d);
            CHECK(std::abs(alone.data<float>()[head * head_dim + d] - sum) < 1e-5);
          }
        }
      }
    });
}

}  // namespace

TEST_CASE("attention of newest tokens is the softmax over what each text has, and each its own") {
  // Four, three, two heads and one go through values together, in columns of each width.
  check_newest(10, 2, 20);
  check_newest(7, 1, 84);
  check_newest(4, 2, 75);
}

TEST_CASE("products and attention of texts refuse what does not fit, and pass NaN on") {
  const Tensor x = noise_tensor({2, 8}, 1), w = noise_tensor({4, 8}, 2);
  CHECK_THROWS_AS(few_rows(x, noise_tensor({4, 7}, 2), {}, {}), Error);
  CHECK_THROWS_AS(few_rows(x, w, {}, noise_tensor({5}, 3)), Error);
  CHECK_THROWS_AS(few_rows(x, Tensor({4, 8}, DType::u8), {}, {}), Error);
  const auto of = [&](const Tensor& kv, std::int64_t seen) {
    const SeenKeys text{kv, seen};
    return newest_query(x.rows(0, 1), std::span(&text, 1), 2, 1);
  };
  CHECK_THROWS_AS(of(noise_tensor({3, 8}, 4), 0), Error);
  CHECK_THROWS_AS(of(noise_tensor({3, 8}, 4), 4), Error);
  CHECK_THROWS_AS(of(noise_tensor({3, 9}, 4), 1), Error);
  const Tensor kv = noise_tensor({3, 8}, 4);
  CHECK(!std::isnan(of(kv, 3).floats()[0]));
  kv.data<float>()[9] = std::nanf("");
  CHECK(std::isnan(of(kv, 3).floats()[0]));
}

namespace {

/// Blocks of any codes, with scales that are numbers.
BlockRows noise_blocks(BlockFormat format, std::int64_t outputs, std::int64_t columns,
                       std::uint32_t seed) {
  const BlockLayout layout = block_layout(format);
  const std::int64_t blocks = columns / layout.elements;
  BlockRows rows{Tensor({outputs, blocks * layout.bytes}, DType::u8), format};
  auto* const bytes = rows.bytes.data<std::uint8_t>();
  for (std::int64_t i = 0; i < rows.bytes.elements(); ++i) {
    seed = seed * 1664525 + 1013904223;
    bytes[i] = static_cast<std::uint8_t>(seed >> 24);
  }
  const bool at_end = format == BlockFormat::q6_k;
  const bool has_offsets = format == BlockFormat::q4_k || format == BlockFormat::q5_k;
  for (std::int64_t i = 0; i < outputs * blocks; ++i) {
    std::uint8_t* const block = bytes + i * layout.bytes;
    for (const std::int64_t upper : {at_end ? layout.bytes - 1 : 1, std::int64_t{3}})
      if (upper != 3 || has_offsets) block[upper] = 0x14 | (block[upper] & 0x83);
  }
  return rows;
}

}  // namespace

TEST_CASE("products of few rows of blocks are those of their numbers, a row as it is alone") {
  for (const BlockFormat format :
       {BlockFormat::q8_0, BlockFormat::q4_k, BlockFormat::q5_k, BlockFormat::q6_k}) {
    INFO(block_layout(format).name);
    std::vector<Tensor> numbers;
    for_each_isa([&] {
      for (const std::int64_t out : {1, 7, 19}) {
        const BlockRows w = noise_blocks(format, out, 512, 3);
        const Tensor x = noise_tensor({kFewRows, 512}, 1), bias = noise_tensor({out}, 2);
        const Tensor wide = dequantize_blocks(w, DType::f32);
        if (out == 19) numbers.push_back(wide);
        CHECK(same_bits(dequantize_blocks(w, DType::bf16), wide.to(DType::bf16)));
        const Tensor all = few_rows_of_blocks(x, w, bias);
        double largest = 1;
        for (const float number : wide.floats())
          largest = std::max(largest, std::abs(double{number}));
        CHECK(farthest_of(all, x, wide, bias) < 1e-4 * largest);
        CHECK(farthest_of(few_rows_of_blocks(x, w, {}), x, wide, {}) < 1e-4 * largest);
        for (const std::int64_t count : {1, 2, 3, 5, 8})
          for (std::int64_t begin = 0; begin + count <= kFewRows; begin += 3)
            CHECK(same_bits(few_rows_of_blocks(x.rows(begin, begin + count), w, bias),
                            all.rows(begin, begin + count)));
      }
    });
    for (const Tensor& other : numbers)
      CHECK(same_bits(other, numbers.front()));
  }
}

TEST_CASE("rows that are not whole blocks are refused, and products that do not fit") {
  const BlockRows w = noise_blocks(BlockFormat::q8_0, 2, 64, 1);
  CHECK_THROWS_AS(dequantize_blocks({w.bytes, BlockFormat::q4_k}, DType::f32), Error);
  CHECK_THROWS_AS(dequantize_blocks(w, DType::f16), Error);
  CHECK_THROWS_AS(few_rows_of_blocks(noise_tensor({1, 32}, 1), w, {}), Error);
  CHECK_THROWS_AS(few_rows_of_blocks(noise_tensor({1, 64}, 1), w, noise_tensor({3}, 1)), Error);
}

TEST_CASE("the CPU logs of blocks the kernels that Device::meta counts") {
  for (const Device device : {Device::cpu, Device::meta}) {
    const BlockRows w{Tensor::zeros({2, 34}, DType::u8, device), BlockFormat::q8_0};
    const Tensor x = Tensor::zeros({1, 32}, DType::f32, device);
    const KernelLog log;
    static_cast<void>(dequantize_blocks(w, DType::f32));
    static_cast<void>(few_rows_of_blocks(x, w, {}));
    std::vector<std::string> names;
    for (const KernelLog::Entry& entry : log.entries())
      names.push_back(entry.call.name);
    CHECK(names == std::vector<std::string>{"dequantize_blocks", "few_rows"});
  }
}

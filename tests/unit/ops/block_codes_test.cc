// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/block_codes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "ops/check.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

struct Coded {
  Tensor codes, scales;
};

PartOfWhole all_of(std::int64_t count) {
  return {.count = count, .length = count, .stride = count, .whole = count};
}

Coded coded(const Tensor& numbers, CodeRange range) {
  const PartOfWhole all = all_of(numbers.elements());
  Coded result{Tensor(numbers.shape(), DType::u8), Tensor::zeros({code_blocks(all.whole)})};
  scales_of_blocks(numbers, all, result.scales);
  encode_blocks(numbers, result.scales, range, all, result.codes);
  return result;
}

/// Numbers of many sizes; those of a block of zeros too.
Tensor many_sizes(std::int64_t count, bool negative) {
  const Tensor numbers = noise_tensor({count}, 4);
  for (std::size_t i = 0; i < numbers.floats().size(); ++i) {
    float& number = numbers.floats()[i];
    number *= std::pow(10.f, static_cast<float>(i * 7 % 13) - 9);
    if (!negative) number = std::abs(number);
    if (i / 256 == 1) number = 0;
  }
  return numbers;
}

}  // namespace

TEST_CASE("the numbers of codes are those that are published") {
  // bitsandbytes 0.44, create_dynamic_map(signed=True) and (signed=False), of 8 bits.
  const std::array<float, 256>&with_sign = numbers_of_codes(CodeRange::signed_unit),
                          &without = numbers_of_codes(CodeRange::unit);
  CHECK(std::ranges::is_sorted(with_sign));
  CHECK(std::ranges::is_sorted(without));
  CHECK(with_sign[0] == Approx(-0.99296875));
  CHECK(with_sign[255] == 1);
  CHECK(with_sign[127] == 0);
  CHECK(with_sign[128] == Approx(5.5e-7));
  CHECK(with_sign[126] == Approx(-5.5e-7));
  CHECK(with_sign[129] == Approx(3.25e-6));
  CHECK(with_sign[130] == Approx(7.75e-6));
  CHECK(without[0] == 0);
  CHECK(without[1] == Approx(3.25e-7));
  CHECK(without[2] == Approx(7.75e-7));
  CHECK(without[254] == Approx(0.996484375));
  CHECK(without[255] == 1);
}

TEST_CASE("a number gets the nearest code, and the largest of its block is exact") {
  for (const CodeRange range : {CodeRange::signed_unit, CodeRange::unit}) {
    const Tensor numbers = many_sizes(1000, range == CodeRange::signed_unit);
    const auto [codes, scales] = coded(numbers, range);
    const Tensor back({1000});
    decode_blocks(codes, scales, range, all_of(1000), back);
    for (std::size_t i = 0; i < 1000; ++i) {
      const float scale = scales.floats()[i / 256];
      double nearest = HUGE_VAL;
      for (const float one : numbers_of_codes(range))
        nearest = std::min(nearest, std::abs(double{one} * scale - numbers.floats()[i]));
      CHECK(std::abs(double{back.floats()[i]} - numbers.floats()[i]) <= nearest + 1e-6 * scale);
      CHECK(std::abs(numbers.floats()[i]) <= scale);
    }
    for (std::size_t block = 0; block < 4; ++block) {
      const auto own = numbers.floats().subspan(block * 256, block == 3 ? 232 : 256);
      float most = 0;
      for (const float number : own)
        most = std::max(most, std::abs(number));
      CHECK(scales.floats()[block] == most);
    }
    CHECK(scales.floats()[1] == 0);
  }
}

TEST_CASE("parts that agree on scales have the codes of the whole") {
  constexpr std::int64_t kRows = 7, kColumns = 150, kAll = kRows * kColumns;
  const Tensor whole = many_sizes(kAll, true);
  const Coded expected = coded(whole, CodeRange::signed_unit);
  // Some of the columns, rows, or elements of either.
  std::vector<PartOfWhole> parts;
  for (const auto& [first, columns] : {std::pair<std::int64_t, std::int64_t>(0, 40), {40, 110}})
    for (const auto& [begin, end] :
         {std::pair(std::int64_t{0}, kRows * columns / 3), {kRows * columns / 3, kRows * columns}})
      parts.push_back({end - begin, begin, columns, kColumns, first, kAll});
  std::vector<Tensor> numbers;
  const Tensor scales = Tensor::zeros({code_blocks(kAll)});
  for (const PartOfWhole& part : parts) {
    const Tensor& own = numbers.emplace_back(Tensor({part.count}));
    for (std::int64_t k = 0; k < part.count; ++k) {
      const std::int64_t at = part.begin + k;
      own.floats()[static_cast<std::size_t>(k)] =
          whole.data<float>()[part.first + at / part.length * part.stride + at % part.length];
    }
    const Tensor of_part = Tensor::zeros({code_blocks(kAll)});
    scales_of_blocks(own, part, of_part);
    greater_in_place(scales, of_part);
  }
  CHECK(std::ranges::equal(scales.floats(), expected.scales.floats()));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PartOfWhole& part = parts[i];
    const Tensor codes({part.count}, DType::u8), back({part.count});
    encode_blocks(numbers[i], scales, CodeRange::signed_unit, part, codes);
    decode_blocks(codes, scales, CodeRange::signed_unit, part, back);
    bool same = true, near = true;
    for (std::int64_t k = 0; k < part.count; ++k) {
      const std::int64_t at = part.begin + k,
                         place = part.first + at / part.length * part.stride + at % part.length;
      const std::uint8_t code = expected.codes.data<std::uint8_t>()[place];
      same = same && codes.data<std::uint8_t>()[k] == code;
      near = near && back.data<float>()[k] == numbers_of_codes(CodeRange::signed_unit)[code] *
                                                  scales.data<float>()[place / kCodeBlock];
    }
    CHECK(same);
    CHECK(near);
  }
  CHECK_THROWS_AS(scales_of_blocks(Tensor({3}), all_of(4), Tensor({1})), Error);
}

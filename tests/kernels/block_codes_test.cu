// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "block_codes.h"
#include "kernel_test.h"

using namespace vfm::test;
using vfm::kernels::CodedPart;
using vfm::kernels::CodeTable;
using vfm::kernels::kCodedBlock;

namespace {

using Codes = std::vector<std::uint8_t>;

// Numbers that are dense near zero, and the limits between them.
CodeTable numbers_table() {
  CodeTable table{};
  for (int i = 0; i < 256; ++i) {
    const float x = (static_cast<float>(i) - 127) / 128;
    table.v[i] = x * std::abs(x) * std::abs(x);
  }
  table.v[255] = 1;
  return table;
}

CodeTable limits_table(const CodeTable& numbers) {
  CodeTable table{};
  for (int i = 0; i < 255; ++i)
    table.v[i] = (numbers.v[i] + numbers.v[i + 1]) / 2;
  return table;
}

std::int64_t place(const CodedPart& part, std::int64_t element) {
  const std::int64_t at = part.begin + element;
  return part.first + at / part.length * part.stride + at % part.length;
}

CodedPart with_blocks(CodedPart part) {
  if (part.count == 0) return part;
  part.first_block = place(part, 0) / kCodedBlock;
  part.end_block = place(part, part.count - 1) / kCodedBlock + 1;
  return part;
}

void test_part(Checker& checker, const std::string& name, const CodedPart& given,
               std::int64_t whole) {
  const CodedPart part = with_blocks(given);
  const auto count = static_cast<std::size_t>(part.count);
  const auto blocks = static_cast<std::size_t>((whole + kCodedBlock - 1) / kCodedBlock);
  std::vector<float> numbers = noise(count, 5);
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] *= std::pow(10.f, static_cast<float>(i % 9) - 7);
    if (place(part, static_cast<std::int64_t>(i)) / kCodedBlock == 1) numbers[i] = 0;
  }
  std::vector<float> scales(blocks, -5);
  for (std::size_t i = 0; i < count; ++i) {
    float& scale =
        scales[static_cast<std::size_t>(place(part, static_cast<std::int64_t>(i)) / kCodedBlock)];
    scale = std::max(scale, std::abs(numbers[i]));
    scale = std::max(scale, 0.f);
  }
  const CodeTable table = numbers_table(), limits = limits_table(table);
  Codes codes(count);
  std::vector<float> back(count);
  for (std::size_t i = 0; i < count; ++i) {
    const float scale =
        scales[static_cast<std::size_t>(place(part, static_cast<std::int64_t>(i)) / kCodedBlock)];
    const float x = scale > 0 ? numbers[i] / scale : 0;
    codes[i] = static_cast<std::uint8_t>(std::lower_bound(limits.v, limits.v + 255, x) - limits.v);
    back[i] = table.v[codes[i]] * scale;
  }
  const DeviceArray<float> there(numbers), made_scales(std::vector<float>(blocks, -5.f)),
      decoded(count);
  const DeviceArray<std::uint8_t> made_codes(count);
  need(vfm::kernels::scales_of_blocks(there.get(), part, made_scales.get(), nullptr), "scales");
  checker.check(name + ": scales", made_scales.host() == scales);
  need(vfm::kernels::encode_blocks(there.get(), made_scales.get(), limits, part, made_codes.get(),
                                   nullptr),
       "encode");
  checker.check(name + ": codes", made_codes.host() == codes);
  need(vfm::kernels::decode_blocks(made_codes.get(), made_scales.get(), table, part, decoded.get(),
                                   nullptr),
       "decode");
  checker.check(name + ": numbers", decoded.host() == back);
}

void test_greater(Checker& checker, std::size_t count) {
  std::vector<float> a = noise(count, 1), b = noise(count, 2);
  const DeviceArray<float> target(a), other(b);
  need(vfm::kernels::greater_in_place(target.get(), other.get(), static_cast<std::int64_t>(count),
                                      nullptr),
       "greater");
  for (std::size_t i = 0; i < count; ++i)
    a[i] = std::max(a[i], b[i]);
  checker.check("the greater of " + std::to_string(count), target.host() == a);
}

void measure() {
  constexpr std::size_t kCount = std::size_t{4096} * 4096;
  const DeviceArray<float> numbers(noise(kCount, 3)), scales(kCount / kCodedBlock);
  const DeviceArray<std::uint8_t> codes(kCount);
  const CodeTable table = numbers_table(), limits = limits_table(table);
  const auto count = static_cast<std::int64_t>(kCount);
  const CodedPart part = with_blocks({.count = count, .length = count, .stride = count});
  time_launch("scales of blocks", 4. * kCount, 0, [&] {
    return vfm::kernels::scales_of_blocks(numbers.get(), part, scales.get(), nullptr);
  });
  time_launch("encode blocks", 5. * kCount, 0, [&] {
    return vfm::kernels::encode_blocks(numbers.get(), scales.get(), limits, part, codes.get(),
                                       nullptr);
  });
  time_launch("decode blocks", 5. * kCount, 0, [&] {
    return vfm::kernels::decode_blocks(codes.get(), scales.get(), table, part, numbers.get(),
                                       nullptr);
  });
}

void tests(Checker& checker) {
  for (const std::int64_t count : {0, 1, 255, 256, 257, 5000})
    test_part(checker, "all of " + std::to_string(count),
              {.count = count,
               .length = std::max<std::int64_t>(count, 1),
               .stride = std::max<std::int64_t>(count, 1)},
              count);
  test_part(checker, "a stretch", {.count = 700, .begin = 333, .length = 5000, .stride = 5000},
            5000);
  test_part(checker, "rows",
            {.count = 900, .begin = 0, .length = 900, .stride = 5000, .first = 1700}, 5000);
  test_part(checker, "columns",
            {.count = 1000, .begin = 0, .length = 40, .stride = 200, .first = 120}, 5000);
  test_part(checker, "a stretch of columns",
            {.count = 401, .begin = 377, .length = 40, .stride = 200, .first = 160}, 5000);
  test_part(checker, "one column",
            {.count = 20, .begin = 3, .length = 1, .stride = 200, .first = 7}, 5000);
  for (const std::size_t count : {0, 1, 256, 1000})
    test_greater(checker, count);
  CodedPart wrong;
  wrong.end_block = -9;
  checker.check(
      "fewer blocks than none",
      vfm::kernels::scales_of_blocks(nullptr, wrong, nullptr, nullptr) == cudaErrorInvalidValue);
  if (timed()) measure();
}

}  // namespace

int main() {
  return run(tests);
}

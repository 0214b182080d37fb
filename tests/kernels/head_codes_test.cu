// Heads as E4M3 and back, to the last bit: every value is computed alone, and a maximum
// has no order.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "fp8_reference.h"
#include "head_codes.h"
#include "kernel_test.h"

using namespace vfm::kernels;
using namespace vfm::test;

namespace {

using bf16 = __nv_bfloat16;

void check_heads(Checker& checker, HeadCodes call, float damage) {
  const auto rows = static_cast<std::size_t>(call.rows), dim = static_cast<std::size_t>(call.head_dim);
  const auto heads = static_cast<std::size_t>(call.queries + call.keys + call.values);
  const auto kind_of = [&](std::size_t i) {
    const auto head = static_cast<int>(i / dim % heads);
    return head < call.queries ? 0u : head < call.queries + call.keys ? 1u : 2u;
  };
  std::vector<float> numbers = noise(rows * heads * dim, 3);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] *= kind_of(i) == 1 ? 3.f : 1.f;
  if (damage != 0) numbers[numbers.size() / 2] = damage;
  const std::vector<bf16> x = as<bf16>(numbers);
  const DeviceArray<bf16> from(x), back(x.size());
  const DeviceArray<std::uint8_t> codes(x.size());
  const DeviceArray<std::uint32_t> own(3), largest(3);
  const DeviceArray<float> scales(4);
  need(largest_of_kinds(call, from.get(), own.get(), nullptr), "largest_of_kinds");
  const std::vector<std::uint32_t> found = own.host();
  // Another rank has larger values.
  std::vector<std::uint32_t> parts = found;
  for (const float other : {0.f, 1.f, 7.5f})
    parts.push_back(std::bit_cast<std::uint32_t>(other));
  const DeviceArray<std::uint32_t> of_parts(parts);
  need(largest_of_parts(of_parts.get(), 2, largest.get(), nullptr), "largest_of_parts");
  call.largest = largest.get();
  need(quantize_heads(call, from.get(), codes.get(), nullptr), "quantize_heads");
  need(restore_heads(call, codes.get(), back.get(), nullptr), "restore_heads");
  need(head_scales(largest.get(), scales.get(), nullptr), "head_scales");
  const std::vector<std::uint8_t> got = codes.host();
  const std::vector<bf16> restored = back.host();
  const std::vector<float> factors = scales.host();
  std::uint32_t most[3] = {};
  for (std::size_t i = 0; i < x.size(); ++i)
    most[kind_of(i)] =
        std::max(most[kind_of(i)], std::bit_cast<std::uint32_t>(std::abs(value(x[i]))));
  std::size_t wrong_largest = 0, wrong_scales = 0, wrong = 0, wrong_back = 0;
  ReferenceScale by[3];
  const auto differ = [](float a, float b) { return std::isnan(b) ? !std::isnan(a) : a != b; };
  for (std::size_t kind = 0; kind < 3; ++kind) {
    wrong_largest += found[kind] != most[kind];
    by[kind] = fp8_scale_of(std::bit_cast<float>(std::max(most[kind], parts[3 + kind])));
    wrong_scales += differ(factors[kind], by[kind].scale);
  }
  wrong_scales += differ(factors[3], by[2].inverse);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const ReferenceScale& scale = by[kind_of(i)];
    wrong += got[i] != fp8_code_of(value(x[i]) * scale.inverse);
    wrong_back += differ(
        value(restored[i]),
        value(as<bf16>(std::vector<float>{scale.scale * static_cast<float>(fp8_value(got[i]))})[0]));
  }
  const std::string of = std::to_string(rows) + " rows of " + std::to_string(heads) + " heads of " +
                         std::to_string(dim) + (damage != 0 ? ", not finite" : "");
  checker.check(of + ": " + std::to_string(wrong_largest) + " largest", wrong_largest == 0);
  checker.check(of + ": " + std::to_string(wrong_scales) + " scales", wrong_scales == 0);
  checker.check(of + ": " + std::to_string(wrong) + " codes", wrong == 0);
  checker.check(of + ": " + std::to_string(wrong_back) + " restored", wrong_back == 0);
}

void tests(Checker& checker) {
  // Rows, heads of each kind, and their size.
  for (const HeadCodes& call : {HeadCodes{1, 1, 0, 0, 64},
                                {73, 2, 2, 2, 64},
                                {300, 4, 1, 1, 128},
                                {128, 0, 1, 1, 16},
                                {9, 0, 0, 2, 48},
                                {0, 1, 1, 1, 64}})
    check_heads(checker, call, 0);
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY})
    check_heads(checker, {50, 2, 1, 1, 64}, bad);
  HeadCodes call{1, 2, 0, 0, 24};
  checker.check("heads of 24",
                quantize_heads(call, nullptr, nullptr, nullptr) == cudaErrorInvalidValue);
  if (!timed()) return;
  constexpr std::size_t kCount = std::size_t{16384} * 96 * 128;
  const DeviceArray<bf16> x(as<bf16>(noise(kCount, 1)));
  const DeviceArray<std::uint8_t> codes(kCount);
  const DeviceArray<std::uint32_t> largest(std::vector<std::uint32_t>(3, 0x40000000u));
  const HeadCodes all{16384, 32, 32, 32, 128, largest.get()};
  time_launch("heads to FP8 16384 x 96 x 128", 3.0 * kCount, 0,
              [&] { return quantize_heads(all, x.get(), codes.get(), nullptr); });
  time_launch("largest of heads 16384 x 96 x 128", 2.0 * kCount, 0,
              [&] { return largest_of_kinds(all, x.get(), largest.get(), nullptr); });
}

}  // namespace

int main() {
  return run(tests);
}

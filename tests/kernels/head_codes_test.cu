// Heads of samples as E4M3 and back, to the last bit: every value is computed alone, and a maximum
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

struct Sizes {
  std::vector<int> lengths;  // rows of each sample
  int heads, head_dim;
};

std::vector<HeadRows> items_of(const Sizes& sizes) {
  std::vector<HeadRows> items;
  int first = 0;
  for (std::size_t sample = 0; sample < sizes.lengths.size(); ++sample)
    for (int left = sizes.lengths[sample]; left > 0; left -= kHeadRows) {
      items.push_back({static_cast<std::int32_t>(sample), first, std::min(left, kHeadRows)});
      first += items.back().count;
    }
  return items;
}

void check_sizes(Checker& checker, const Sizes& sizes, float damage) {
  std::size_t rows = 0;
  for (const int length : sizes.lengths)
    rows += static_cast<std::size_t>(length);
  const auto heads = static_cast<std::size_t>(sizes.heads),
             dim = static_cast<std::size_t>(sizes.head_dim);
  std::vector<float> numbers = noise(rows * heads * dim, 3);
  if (damage != 0) numbers[numbers.size() / 2] = damage;
  const std::vector<bf16> x = as<bf16>(numbers);
  const std::vector<HeadRows> items = items_of(sizes);
  const std::size_t slots = sizes.lengths.size() * heads;
  const DeviceArray<HeadRows> on_device(items);
  const DeviceArray<bf16> from(x), back(x.size());
  const DeviceArray<std::uint8_t> codes(x.size());
  // Another rank has larger values of every third head.
  std::vector<std::uint32_t> parts(2 * slots);
  for (std::size_t i = 0; i < slots; i += 3)
    parts[slots + i] = std::bit_cast<std::uint32_t>(7.5f);
  const DeviceArray<std::uint32_t> own(slots);
  HeadCodes call;
  call.items = on_device.get();
  call.item_count = static_cast<std::int64_t>(items.size());
  call.heads = sizes.heads, call.head_dim = sizes.head_dim;
  call.samples = static_cast<std::int64_t>(sizes.lengths.size());
  need(largest_of_heads(call, from.get(), own.get(), nullptr), "largest_of_heads");
  const std::vector<std::uint32_t> found = own.host();
  std::copy(found.begin(), found.end(), parts.begin());
  const DeviceArray<std::uint32_t> of_parts(parts), largest(slots);
  need(largest_of_parts(of_parts.get(), 2, static_cast<std::int64_t>(slots), largest.get(), nullptr),
       "largest_of_parts");
  call.largest = largest.get();
  need(quantize_heads(call, from.get(), codes.get(), nullptr), "quantize_heads");
  need(restore_heads(call, codes.get(), back.get(), nullptr), "restore_heads");
  const std::vector<std::uint8_t> got = codes.host();
  const std::vector<bf16> restored = back.host();
  std::size_t wrong_largest = 0, wrong = 0, wrong_back = 0, first = 0;
  for (std::size_t sample = 0; sample < sizes.lengths.size(); ++sample) {
    const auto length = static_cast<std::size_t>(sizes.lengths[sample]);
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t slot = sample * heads + head;
      std::uint32_t most = 0;
      const auto each = [&](auto&& body) {
        for (std::size_t row = first; row < first + length; ++row)
          for (std::size_t d = 0; d < dim; ++d)
            body((row * heads + head) * dim + d);
      };
      each([&](std::size_t i) {
        most = std::max(most, std::bit_cast<std::uint32_t>(std::abs(value(x[i]))));
      });
      wrong_largest += found[slot] != most;
      const ReferenceScale by =
          fp8_scale_of(std::bit_cast<float>(std::max(most, parts[slots + slot])));
      each([&](std::size_t i) {
        wrong += got[i] != fp8_code_of(value(x[i]) * by.inverse);
        const float wanted = value(
            as<bf16>(std::vector<float>{by.scale * static_cast<float>(fp8_value(got[i]))})[0]);
        wrong_back +=
            std::isnan(wanted) ? !std::isnan(value(restored[i])) : value(restored[i]) != wanted;
      });
    }
    first += length;
  }
  const std::string of = std::to_string(rows) + " rows of " + std::to_string(heads) + " heads of " +
                         std::to_string(dim) + (damage != 0 ? ", not finite" : "");
  checker.check(of + ": " + std::to_string(wrong_largest) + " largest", wrong_largest == 0);
  checker.check(of + ": " + std::to_string(wrong) + " codes", wrong == 0);
  checker.check(of + ": " + std::to_string(wrong_back) + " restored", wrong_back == 0);
}

void tests(Checker& checker) {
  for (const Sizes& sizes : {Sizes{{1}, 1, 64},
                             {{70, 3}, 6, 64},
                             {{5, 0, 129}, 3, 128},
                             {{64, 1, 63}, 2, 16},
                             {{9}, 2, 48}})
    check_sizes(checker, sizes, 0);
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY})
    check_sizes(checker, {{20, 30}, 4, 64}, bad);
  HeadCodes call;
  call.heads = 2, call.head_dim = 24;
  checker.check("heads of 24",
                quantize_heads(call, nullptr, nullptr, nullptr) == cudaErrorInvalidValue);
  if (!timed()) return;
  const Sizes sizes{{8192, 8192}, 96, 128};
  const std::vector<HeadRows> items = items_of(sizes);
  constexpr std::size_t kCount = std::size_t{16384} * 96 * 128;
  const DeviceArray<HeadRows> on_device(items);
  const DeviceArray<bf16> x(as<bf16>(noise(kCount, 1)));
  const DeviceArray<std::uint8_t> codes(kCount);
  const DeviceArray<std::uint32_t> largest(std::vector<std::uint32_t>(192, 0x40000000u));
  const HeadCodes all{
      on_device.get(), static_cast<std::int64_t>(items.size()), 96, 128, 2, largest.get()};
  time_launch("heads to FP8 16384 x 96 x 128", 3.0 * kCount, 0,
              [&] { return quantize_heads(all, x.get(), codes.get(), nullptr); });
}

}  // namespace

int main() {
  return run(tests);
}

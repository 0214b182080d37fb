// SPDX-License-Identifier: Apache-2.0
#include "dist/ordered_sum.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/error.h"
#include "base/half.h"

namespace vfm::dist {
namespace {

constexpr std::size_t kBlock = 1024;  // elements, whose sums stay in the nearest cache

template <class Value, class Total, class Read, class Write>
void add_up(std::span<const std::byte* const> parts, std::byte* to, std::size_t count, Read read,
            Write write) {
  std::array<Total, kBlock> totals;
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t n = std::min(kBlock, count - begin);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const Value* values = reinterpret_cast<const Value*>(parts[p]) + begin;
      // The first is taken as it is: 0 + -0 would be 0.
      if (p == 0)
        for (std::size_t i = 0; i < n; ++i)
          totals[i] = read(values[i]);
      else
        for (std::size_t i = 0; i < n; ++i)
          totals[i] += read(values[i]);
    }
    Value* out = reinterpret_cast<Value*>(to) + begin;
    for (std::size_t i = 0; i < n; ++i)
      out[i] = write(totals[i]);
  }
}

template <class Value>
void add_up_same(std::span<const std::byte* const> parts, std::byte* to, std::size_t count) {
  const auto same = [](Value value) { return value; };
  add_up<Value, Value>(parts, to, count, same, same);
}

}  // namespace

void sum_in_order(Sum sum, std::span<const std::byte* const> parts, std::byte* to,
                  std::size_t count) {
  switch (sum) {
    case Sum::f32:
      return add_up_same<float>(parts, to, count);
    case Sum::f64:
      return add_up_same<double>(parts, to, count);
    case Sum::i64:
      return add_up_same<std::int64_t>(parts, to, count);
    case Sum::bf16:
      return add_up<std::uint16_t, float>(parts, to, count, bfloat16_to_float, float_to_bfloat16);
    case Sum::none:
      break;
  }
  fail("a sum of what is no number");
}

}  // namespace vfm::dist

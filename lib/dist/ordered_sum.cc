// SPDX-License-Identifier: Apache-2.0
#include "dist/ordered_sum.h"

#include <vector>

#include "base/cpu_level.h"
#include "base/error.h"

namespace vfm::dist {
namespace {

template <class Value>
using Adder = void(const Value* const* parts, std::size_t ranks, Value* to, std::size_t count);

template <class Value>
void add_whole(const Value* const* parts, std::size_t ranks, Value* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Value total = parts[0][i];
    for (std::size_t part = 1; part < ranks; ++part)
      total += parts[part][i];
    to[i] = total;
  }
}

template <class Value>
void add_with(Adder<Value>* adder, std::span<const std::byte* const> parts, std::byte* to,
              std::size_t count) {
  std::vector<const Value*> values;
  for (const std::byte* const part : parts)
    values.push_back(reinterpret_cast<const Value*>(part));
  adder(values.data(), values.size(), reinterpret_cast<Value*>(to), count);
}

}  // namespace

void sum_in_order(Sum sum, std::span<const std::byte* const> parts, std::byte* to,
                  std::size_t count) {
  switch (sum) {
    case Sum::f32:
      return add_with(best_of(base::add_floats, avx2::add_floats, avx512::add_floats), parts, to,
                      count);
    case Sum::bf16:
      return add_with(best_of(base::add_bfloats, avx2::add_bfloats, avx512::add_bfloats), parts, to,
                      count);
    case Sum::f64:
      return add_with<double>(add_whole<double>, parts, to, count);
    case Sum::i64:
      return add_with<std::int64_t>(add_whole<std::int64_t>, parts, to, count);
    case Sum::none:
      break;
  }
  fail("a sum of what is no number");
}

}  // namespace vfm::dist

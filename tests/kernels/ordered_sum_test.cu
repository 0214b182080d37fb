// Against the sum that the host makes in the same order, bit for bit; values tell another order,
// and a rounding in between.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "kernel_test.h"
#include "ordered_sum.h"

using namespace vfm::kernels;
using namespace vfm::test;

namespace {

using Bf16 = __nv_bfloat16;

template <class T>
constexpr Type type_of() {
  return sizeof(T) == 2 ? Type::bf16 : Type::f32;
}

// Of such sizes that the order of additions changes bits; some are -0 in every part.
std::vector<float> numbers(std::size_t count, int part) {
  std::vector<float> values = noise(count, static_cast<unsigned>(part) + 1);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = i % 17 == 3 ? -0.f : std::ldexp(values[i], static_cast<int>(i * 7 + 5 * part) % 23);
  return values;
}

enum class How { right, backward, rounded };

template <class T>
std::vector<T> expected(const std::vector<std::vector<float>>& parts, How how) {
  std::vector<float> total;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto& values = parts[how == How::backward ? parts.size() - 1 - p : p];
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float one = value(T(values[i]));
      if (p == 0)
        total.push_back(one);
      else
        total[i] += one;
      if (how == How::rounded) total[i] = value(T(total[i]));
    }
  }
  return as<T>(total);
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
void compare(Checker& checker, std::size_t n, int parts, int place, std::size_t shift) {
  const std::size_t stride = n + shift;
  std::vector<std::vector<float>> all;
  std::vector<float> others;
  for (int part = 0; part < parts; ++part) {
    all.push_back(numbers(n, part));
    if (part == place) continue;
    std::vector<float> one = all.back();
    one.resize(stride, 1e30f);
    others.insert(others.end(), one.begin(), one.end());
  }
  std::vector<float> own(shift, 1e30f);
  const auto& mine = all[static_cast<std::size_t>(place)];
  own.insert(own.end(), mine.begin(), mine.end());
  const DeviceArray<T> down(as<T>(own)), dothers(as<T>(others)), dsum(n);
  const std::string name = std::string(sizeof(T) == 2 ? "bf16" : "f32") + " " + std::to_string(n) +
                           " of " + std::to_string(parts) + ", place " + std::to_string(place);
  need(ordered_sum(type_of<T>(), down.get() + shift, place, dothers.get(),
                   static_cast<std::int64_t>(stride), parts, dsum.get(),
                   static_cast<std::int64_t>(n), nullptr),
       "sum");
  const std::vector<T> wanted = expected<T>(all, How::right);
  checker.check(name, same(dsum.host(), wanted));
  need(ordered_sum(type_of<T>(), down.get() + shift, place, dothers.get(),
                   static_cast<std::int64_t>(stride), parts, down.get() + shift,
                   static_cast<std::int64_t>(n), nullptr),
       "sum in place");
  const std::vector<T> after = down.host();
  checker.check(
      name + " in place",
      same(std::vector<T>(after.begin() + static_cast<std::ptrdiff_t>(shift), after.end()),
           wanted));
  if (parts > 2 && n > 100) {
    const How other = sizeof(T) == 2 ? How::rounded : How::backward;
    checker.check(name + ": the values tell another sum", !same(expected<T>(all, other), wanted));
  }
}

void tests(Checker& checker) {
  for (const std::size_t n : {1, 7, 2048, 2051}) {
    compare<float>(checker, n, 4, 1, 0);
    compare<Bf16>(checker, n, 4, 3, 0);
  }
  compare<float>(checker, 300, 2, 0, 1);
  compare<Bf16>(checker, 301, 3, 2, 3);
  compare<float>(checker, 65, 1, 0, 0);
  compare<Bf16>(checker, 3000, 8, 5, 8);
  checker.check("nothing is no error",
                ordered_sum(Type::f32, nullptr, 0, nullptr, 0, 2, nullptr, 0, nullptr) == 0);
  checker.check("a place beyond the parts is refused",
                ordered_sum(Type::f32, nullptr, 2, nullptr, 0, 2, nullptr, 8, nullptr) ==
                    cudaErrorInvalidValue);
}

}  // namespace

int main() {
  return run(tests);
}

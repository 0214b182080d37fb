// SPDX-License-Identifier: Apache-2.0
#include "kernel_test.h"
#include "resample.h"

using namespace vfm::kernels;
using namespace vfm::test;

namespace {

struct Sizes {
  int rows, columns, channels;
};

// Where the copies of a small side's element are on the large one: `wide` if columns double too.
std::vector<std::size_t> copies(const Sizes& s, std::size_t i, bool wide) {
  const auto channels = static_cast<std::size_t>(s.channels);
  const auto columns = static_cast<std::size_t>(s.columns);
  const std::size_t c = i % channels, column = i / channels % columns;
  const std::size_t row = i / channels / columns, line = columns * channels * (wide ? 2 : 1);
  const std::size_t first = 2 * row * line + column * channels * (wide ? 2 : 1) + c;
  if (!wide) return {first, first + line};
  return {first, first + channels, first + line, first + line + channels};
}

template <class T>
void compare(Checker& checker, const Sizes& s, bool wide, std::size_t skip) {
  const Type type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
  const auto few = static_cast<std::size_t>(s.rows) * s.columns * s.channels;
  const std::size_t many = few * (wide ? 4 : 2);
  const auto small_side = as<T>(noise(few, 1)), large_side = as<T>(noise(many, 2));
  std::vector<double> pooled(few), repeated(many);
  for (std::size_t i = 0; i < few; ++i)
    for (const std::size_t at : copies(s, i, wide)) {
      pooled[i] += 0.25 * value(large_side[at]);
      repeated[at] = 0.5 * value(small_side[i]);
    }
  // `skip` elements in front, which nobody may touch: rows that are not aligned to 16 bytes.
  const auto behind = [skip](const std::vector<T>& values) {
    std::vector<T> all(skip);
    all.insert(all.end(), values.begin(), values.end());
    return all;
  };
  const DeviceArray<T> x(behind(small_side)), y(behind(large_side)), to_few(few + skip),
      to_many(many + skip);
  const std::int64_t span = std::int64_t{s.columns} * s.channels;
  const auto pool = [&](const T* from, T* to) {
    return wide ? pool_pixels(type, from, to, s.rows, s.columns, s.channels, 0.25f, nullptr)
                : pool_frames(type, from, to, s.rows, span, 0.25f, nullptr);
  };
  const auto repeat = [&](const T* from, T* to) {
    return wide ? repeat_pixels(type, from, to, s.rows, s.columns, s.channels, 0.5f, nullptr)
                : repeat_frames(type, from, to, s.rows, span, 0.5f, nullptr);
  };
  need(pool(y.get() + skip, to_few.get() + skip), "pool");
  need(repeat(x.get() + skip, to_many.get() + skip), "repeat");
  const auto after = [skip](const DeviceArray<T>& array) {
    const std::vector<T> all = array.host();
    return std::vector<T>(all.begin() + static_cast<std::ptrdiff_t>(skip), all.end());
  };
  const std::string name = std::string(sizeof(T) == 2 ? "bf16 " : "f32 ") +
                           (wide ? "pixels " : "frames ") + std::to_string(s.rows) + " x " +
                           std::to_string(s.columns) + " x " + std::to_string(s.channels);
  checker.close(name + " halved", after(to_few), pooled, sizeof(T) == 2 ? 4e-3 : 1e-6);
  checker.close(name + " doubled", after(to_many), repeated, sizeof(T) == 2 ? 4e-3 : 1e-6);
}

void tests(Checker& checker) {
  for (const bool wide : {false, true})
    for (const std::size_t skip : {0, 1})
      for (const Sizes& s : {Sizes{1, 1, 1}, Sizes{3, 5, 8}, Sizes{2, 3, 19}, Sizes{4, 40, 16}}) {
        compare<float>(checker, s, wide, skip);
        compare<__nv_bfloat16>(checker, s, wide, skip);
      }
  checker.check("rows that are too long are refused",
                pool_pixels(Type::f32, nullptr, nullptr, 1, 1 << 16, 1 << 15, 1, nullptr) ==
                    cudaErrorInvalidValue);
  checker.check("too many rows are refused",
                pool_frames(Type::f32, nullptr, nullptr, std::int64_t{1} << 31, 8, 1, nullptr) ==
                    cudaErrorInvalidValue);
  checker.check("nothing is no error",
                repeat_frames(Type::f32, nullptr, nullptr, 0, 8, 1, nullptr) == 0);
}

}  // namespace

int main() {
  return run(tests);
}

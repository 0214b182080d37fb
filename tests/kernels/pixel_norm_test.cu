// SPDX-License-Identifier: Apache-2.0
#include "kernel_test.h"
#include "pixel_norm.h"

using vfm::kernels::PixelNorm;
using vfm::kernels::Type;
using namespace vfm::test;

namespace {

// `skip` elements in front, which nobody may touch: rows that are not aligned to 16 bytes.
template <class T>
void compare(Checker& checker, int pixels, int channels, bool silu, bool in_place,
             std::size_t skip) {
  const auto count = static_cast<std::size_t>(pixels) * channels;
  std::vector<T> x = as<T>(noise(count + skip, 1));
  for (std::size_t i = 0; i < static_cast<std::size_t>(channels); ++i)
    x[skip + i] = T(0.f);  // a pixel of nothing
  const std::vector<float> weight = noise(static_cast<std::size_t>(channels), 2);
  std::vector<double> expected(count);
  for (std::size_t p = 0; p < static_cast<std::size_t>(pixels); ++p) {
    const T* const from = x.data() + skip + p * channels;
    double squares = 0;
    for (int i = 0; i < channels; ++i)
      squares += double{value(from[i])} * value(from[i]);
    const double r = std::sqrt(double(channels)) / std::max(std::sqrt(squares), 1e-12);
    for (int i = 0; i < channels; ++i) {
      const double n = value(from[i]) * r * weight[i];
      expected[p * channels + i] = silu ? n / (1 + std::exp(-n)) : n;
    }
  }
  const DeviceArray<T> given(x), other(count + skip);
  const DeviceArray<float> factors(weight);
  PixelNorm call;
  call.pixels = pixels, call.channels = channels;
  call.type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
  call.silu = silu;
  call.x = given.get() + skip;
  call.weight = factors.get();
  call.y = (in_place ? given : other).get() + skip;
  need(vfm::kernels::pixel_norm(call, nullptr), "pixel_norm");
  const std::vector<T> all = (in_place ? given : other).host();
  const std::vector<T> y(all.begin() + static_cast<std::ptrdiff_t>(skip), all.end());
  const std::string name = std::string(sizeof(T) == 2 ? "bf16 " : "f32 ") + std::to_string(pixels) +
                           " x " + std::to_string(channels) + (silu ? " with SiLU" : "") +
                           (skip > 0 ? ", not aligned" : "");
  checker.close(name, y, expected, sizeof(T) == 2 ? 4e-3 : 2e-6);
}

void tests(Checker& checker) {
  for (const bool silu : {false, true})
    for (const std::size_t skip : {0, 1})
      for (const auto& [pixels, channels] :
           {std::pair{1, 1}, {9, 3}, {17, 96}, {5, 160}, {3, 1032}}) {
        compare<float>(checker, pixels, channels, silu, silu, skip);
        compare<__nv_bfloat16>(checker, pixels, channels, silu, !silu, skip);
      }
  PixelNorm call;
  checker.check("nothing is no error", vfm::kernels::pixel_norm(call, nullptr) == 0);
  call.pixels = -1;
  checker.check("a negative size is refused",
                vfm::kernels::pixel_norm(call, nullptr) == cudaErrorInvalidValue);
}

}  // namespace

int main() {
  return run(tests);
}

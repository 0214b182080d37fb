// SPDX-License-Identifier: Apache-2.0
#include "kernel_test.h"
#include "reconstruction.h"

using namespace vfm::test;

namespace {

using vfm::kernels::Fsq;
using vfm::kernels::FsqLevels;
using vfm::kernels::PixelError;

FsqLevels levels_of(const std::vector<int>& sizes) {
  FsqLevels levels{};
  for (const int size : sizes) {
    const int d = levels.dimensions++;
    levels.half[d] = static_cast<float>((size - 1) * 1.001 / 2);
    levels.offset[d] = size % 2 == 0 ? 0.5f : 0.f;
    levels.shift[d] = std::atanh(levels.offset[d] / levels.half[d]);
    levels.middle[d] = static_cast<float>(size / 2);
    levels.lowest[d] = -levels.middle[d];
    levels.highest[d] = static_cast<float>(size - 1 - size / 2);
  }
  return levels;
}

void compare_fsq(Checker& checker, const std::vector<int>& sizes, int places, float spread) {
  Fsq call;
  call.levels = levels_of(sizes);
  call.count = static_cast<std::int64_t>(places) * call.levels.dimensions;
  auto z = noise(static_cast<std::size_t>(call.count), 1);
  for (float& v : z)
    v *= spread;
  z[0] = 1e30f;
  if (call.count > 1) z[1] = -1e30f;
  if (call.count > 2) z[2] = std::nanf("");
  const auto above = noise(z.size(), 2);
  std::vector<double> values(z.size()), gradient(z.size());
  for (std::size_t i = 0; i < z.size(); ++i) {
    const std::size_t d = i % sizes.size();
    const double bent = std::tanh(double{z[i]} + call.levels.shift[d]);
    const double level = std::nearbyint(bent * call.levels.half[d] - call.levels.offset[d]);
    values[i] = std::isnan(level)
                    ? level
                    : std::clamp<double>(level, call.levels.lowest[d], call.levels.highest[d]) /
                          call.levels.middle[d];
    gradient[i] =
        above[i] * (1 - bent * bent) * double{call.levels.half[d]} / call.levels.middle[d];
  }
  const DeviceArray<float> in(z), from(above), out(z.size()), back(z.size());
  call.z = in.get(), call.out = out.get();
  need(fsq(call, nullptr), "fsq");
  call.gradient = from.get(), call.out = back.get();
  need(fsq(call, nullptr), "fsq backward");
  const std::string name = std::to_string(places) + " x " + std::to_string(sizes.size());
  checker.close(name + " values", out.host(), values, 1e-6);
  checker.close(name + " gradient", back.host(), gradient, 1e-6);
}

void compare_error(Checker& checker, int count, float l1, float l2, float scale, bool odd) {
  auto output = noise(static_cast<std::size_t>(count), 1);
  const auto target = noise(static_cast<std::size_t>(count), 2);
  if (odd) output[static_cast<std::size_t>(count / 2)] = std::nanf("");
  if (count > 1) output[1] = target[1];
  std::vector<double> sums(2), gradient(output.size());
  for (std::size_t i = 0; i < output.size(); ++i) {
    const double error = output[i] - target[i];
    sums[0] += std::abs(error);
    sums[1] += error * error;
    gradient[i] = scale * (l1 * (error > 0 ? 1 : error < 0 ? -1 : 0) + 2 * l2 * error);
  }
  const DeviceArray<float> made(output), wanted(target), seed(output.size());
  PixelError call;
  call.count = count;
  call.output = made.get(), call.target = wanted.get();
  call.l1 = l1, call.l2 = l2, call.scale = scale;
  call.seed = scale != 0 ? seed.get() : nullptr;
  const DeviceArray<double> partial(
      static_cast<std::size_t>(vfm::kernels::pixel_error_partials(count))),
      out(2);
  call.partial = partial.get(), call.sums = out.get();
  need(pixel_error(call, nullptr), "pixel error");
  const std::string name = std::to_string(count) + (odd ? " with a NaN" : "");
  checker.check(name + " sums",
                odd ? std::isnan(out.host()[0]) && std::isnan(out.host()[1])
                    : std::abs(out.host()[0] - sums[0]) <= 1e-6 * (1 + sums[0]) &&
                          std::abs(out.host()[1] - sums[1]) <= 1e-6 * (1 + sums[1]));
  if (scale != 0) checker.close(name + " gradient", seed.host(), gradient, 1e-6);
}

void tests(Checker& checker) {
  compare_fsq(checker, {8, 8, 8, 5, 5, 5}, 37, 1);
  compare_fsq(checker, {3}, 1, 1);
  compare_fsq(checker, {1024, 3}, 513, 3);
  compare_fsq(checker, std::vector<int>(16, 4), 20, 0.5f);
  for (const int count : {0, 1, 255, 256, 257, 5000})
    for (const float scale : {0.f, 1.f, 0.5f})
      compare_error(checker, count, 1, scale == 0.5f ? 0.25f : 0.f, scale, false);
  compare_error(checker, 300, 1, 0, 1, true);
  Fsq bad;
  checker.check("no dimensions are refused", fsq(bad, nullptr) == cudaErrorInvalidValue);
  bad.levels = levels_of({8, 8}), bad.count = 3;
  checker.check("half a place is refused", fsq(bad, nullptr) == cudaErrorInvalidValue);
  PixelError negative;
  negative.count = -1;
  checker.check("a count below zero is refused",
                pixel_error(negative, nullptr) == cudaErrorInvalidValue);
  if (!timed()) return;
  constexpr std::size_t kCount = std::size_t{3} * 121 * 704 * 1280;
  const DeviceArray<float> made(kCount), wanted(kCount), seed(kCount);
  const DeviceArray<double> partial(
      static_cast<std::size_t>(vfm::kernels::pixel_error_partials(kCount))),
      out(2);
  PixelError call;
  call.count = kCount, call.output = made.get(), call.target = wanted.get();
  call.l1 = call.scale = 1, call.seed = seed.get();
  call.partial = partial.get(), call.sums = out.get();
  time_launch("pixel error", 12. * kCount, 0, [&] { return pixel_error(call, nullptr); });
}

}  // namespace

int main() {
  return run(tests);
}

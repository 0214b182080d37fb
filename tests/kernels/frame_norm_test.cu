// SPDX-License-Identifier: Apache-2.0
#include "frame_norm.h"
#include "kernel_test.h"

using namespace vfm::kernels;
using namespace vfm::test;

namespace {

struct Sizes {
  int frames, pixels, channels;
};

// What is expected of one call, in double.
struct Expected {
  std::vector<double> moments, y, dx, dweight, dbias;
};

template <class T>
Expected expect(const FrameNorm& c, const std::vector<T>& x, const std::vector<T>& dy,
                const std::vector<float>& weight, const std::vector<float>& bias) {
  Expected e;
  const auto channels = static_cast<std::size_t>(c.channels);
  const std::size_t n = static_cast<std::size_t>(c.pixels) * channels;
  e.dweight.assign(channels, 0), e.dbias.assign(channels, 0);
  for (std::size_t t = 0; t < static_cast<std::size_t>(c.frames); ++t) {
    double mean = 0, variance = 0, mean_g = 0, mean_gn = 0;
    for (std::size_t i = 0; i < n; ++i)
      mean += double{value(x[t * n + i])} / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      variance += std::pow(value(x[t * n + i]) - mean, 2) / static_cast<double>(n);
    e.moments.insert(e.moments.end(), {mean, variance});
    const double rstd = 1 / std::sqrt(variance + double{c.epsilon});
    std::vector<double> norm(n), g(n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t k = i % channels;
      norm[i] = (value(x[t * n + i]) - mean) * rstd;
      const double z = norm[i] * weight[k] + bias[k], s = 1 / (1 + std::exp(-z));
      const double dz = value(dy[t * n + i]) * (c.silu ? s * (1 + z * (1 - s)) : 1);
      e.y.push_back(c.silu ? z * s : z);
      e.dweight[k] += dz * norm[i], e.dbias[k] += dz;
      g[i] = dz * weight[k];
      mean_g += g[i] / static_cast<double>(n), mean_gn += g[i] * norm[i] / static_cast<double>(n);
    }
    for (std::size_t i = 0; i < n; ++i)
      e.dx.push_back(rstd * (g[i] - mean_g - norm[i] * mean_gn));
  }
  return e;
}

// `far`: how many deviations the mean is from zero.
template <class T>
void compare(Checker& checker, const Sizes& s, bool silu, float far) {
  const std::size_t size = static_cast<std::size_t>(s.frames) * s.pixels * s.channels;
  auto numbers = noise(size, 1);
  for (float& v : numbers)
    v = 3 * (v + far);
  const auto x = as<T>(numbers), dy = as<T>(noise(size, 2));
  const auto weight = noise(static_cast<std::size_t>(s.channels), 3);
  const auto bias = noise(static_cast<std::size_t>(s.channels), 4);
  const DeviceArray<T> device_x(x), device_dy(dy), y(size), dx(size);
  const DeviceArray<float> device_weight(weight), device_bias(bias),
      moments(2ul * static_cast<std::size_t>(s.frames)),
      dweight(std::vector<float>(weight.size(), 1)), dbias(std::vector<float>(weight.size(), 2)),
      scratch(static_cast<std::size_t>(s.frames) * kFrameNormChunks * (2ul * weight.size() + 4));
  FrameNorm c;
  c.type = sizeof(T) == 2 ? Type::bf16 : Type::f32;
  c.frames = s.frames, c.pixels = s.pixels, c.channels = s.channels;
  c.silu = silu, c.epsilon = 1e-6f;
  c.x = device_x.get(), c.moments = moments.get();
  c.weight = device_weight.get(), c.bias = device_bias.get();
  c.y = y.get(), c.dy = device_dy.get(), c.dx = dx.get();
  c.dweight = dweight.get(), c.dbias = dbias.get(), c.scratch = scratch.get();
  need(frame_moments(c, nullptr), "moments");
  need(frame_norm_forward(c, nullptr), "forward");
  need(frame_norm_backward(c, nullptr), "backward");
  Expected e = expect(c, x, dy, weight, bias);
  for (double& v : e.dweight)
    v += 1;  // sums are added to what is there
  for (double& v : e.dbias)
    v += 2;
  const std::string name = std::string(sizeof(T) == 2 ? "bf16 " : "f32 ") +
                           std::to_string(s.frames) + " x " + std::to_string(s.pixels) + " x " +
                           std::to_string(s.channels) + (silu ? " silu" : "");
  const double tolerance = sizeof(T) == 2 ? 8e-3 : 4e-6 + 1e-7 * double{far};
  checker.close(name + " moments", moments.host(), e.moments, 1e-6);
  checker.close(name + " y", y.host(), e.y, tolerance);
  checker.close(name + " dx", dx.host(), e.dx, tolerance);
  checker.close(name + " dweight", dweight.host(), e.dweight, 2e-5 + 1e-7 * double{far});
  checker.close(name + " dbias", dbias.host(), e.dbias, 2e-5 + 1e-7 * double{far});
}

void test_refusals(Checker& checker) {
  FrameNorm c;
  c.frames = 65536, c.pixels = c.channels = 1;
  checker.check("too many frames are refused", frame_moments(c, nullptr) == cudaErrorInvalidValue);
  c.frames = 1, c.pixels = 1 << 20, c.channels = 1 << 12;
  checker.check("too large frames are refused",
                frame_norm_forward(c, nullptr) == cudaErrorInvalidValue);
  checker.check("nothing is no error",
                frame_moments({}, nullptr) == 0 && frame_norm_backward({}, nullptr) == 0);
}

void tests(Checker& checker) {
  for (const Sizes& s :
       {Sizes{1, 1, 1}, Sizes{2, 3, 5}, Sizes{1, 77, 24}, Sizes{2, 130, 16}, Sizes{1, 3, 2056}}) {
    compare<float>(checker, s, true, 0);
    compare<__nv_bfloat16>(checker, s, false, 0);
  }
  compare<float>(checker, {1, 200, 8}, false, 300);
  if (!small()) {
    compare<__nv_bfloat16>(checker, {3, 88 * 160, 64}, true, 1);
    compare<float>(checker, {2, 4096, 128}, true, 30);
  }
  test_refusals(checker);
}

}  // namespace

int main() {
  return run(tests);
}

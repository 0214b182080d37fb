// Which CUDA body of a convolution runs: cuDNN's, emulated here, must not be trusted with anything
// that our own kernels contradict, and whatever happens results are right.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/log.h"
#include "cudnn_emulated.h"
#include "ops/conv/conv.h"
#include "ops/determinism.h"
#include "tensor/device.h"
#include "tensor/meta.h"
#include "tensors.h"

using namespace vfm;
using namespace vfm::ops;
using test::apart;

namespace {

std::vector<std::string> warnings;

// A test begins with an emulated cuDNN that is right. Shapes stay known: each test has its own.
test::EmulatedCudnn& fresh() {
  set_deterministic(false);
  warnings.clear();
  set_log_sink(
      [](LogLevel level, std::string_view message) {
        if (level == LogLevel::warning) warnings.emplace_back(message);
      },
      LogLevel::info);
  return test::emulated_cudnn() = {};
}

struct Layer {
  std::int64_t height = 6, in = 8, out = 16, frames = 3;
  int stride = 1;
  DType dtype = DType::bf16;
  bool residual = false, zero = false, infinite = false;
};

// Output, and gradient of what is given.
std::pair<Tensor, Tensor> run(const Layer& layer, Device device) {
  const auto noise = [&](const Shape& shape, int seed, DType dtype) {
    return device == Device::meta ? Tensor(shape, dtype, device)
                                  : noise_tensor(shape, seed, dtype).to(device);
  };
  const auto input = [&](const Shape& shape, int seed) {
    return layer.zero ? Tensor::zeros(shape, layer.dtype, device) : noise(shape, seed, layer.dtype);
  };
  const Tensor x = input({layer.frames, layer.height, 8, layer.in}, 1);
  const Tensor w = noise({layer.out, layer.in, 1, 3, 3}, 2, layer.dtype);
  Tensor bias = layer.zero ? Tensor::zeros({layer.out}, DType::f32, device)
                           : noise({layer.out}, 3, DType::f32);
  if (layer.infinite)
    bias = Tensor::from(std::vector<float>(static_cast<std::size_t>(layer.out),
                                           std::numeric_limits<float>::infinity()),
                        {layer.out})
               .to(device);
  const Shape shape{layer.frames, layer.height / layer.stride, 8 / layer.stride, layer.out};
  Tape tape;
  const Tensor gradient = Tensor::zeros(x.shape(), DType::f32, device);
  tape.watch(x, gradient);
  SpaceConv how;
  how.stride = layer.stride;
  if (layer.residual) how.residual = input(shape, 4);
  const Tensor y = conv_space(tape, x, w, bias, how);
  const Tensor kept = y.clone();
  tape.backward(y, input(shape, 5));
  if (device == Device::meta) return {};
  return {kept.to(Device::cpu).to(DType::f32), gradient.to(Device::cpu)};
}

void check_right(const Layer& layer) {
  const auto [out, gradient] = run(layer, Device::cuda);
  const auto [expected_out, expected_gradient] = run(layer, Device::cpu);
  CHECK(apart(out, expected_out) < 2e-2);
  CHECK(apart(gradient, expected_gradient) < 2e-2);
}

}  // namespace

TEST_CASE("cuDNN convolves a shape forward and backward once its results were compared") {
  test::EmulatedCudnn& cudnn = fresh();
  const auto [height, stride, residual] =
      GENERATE(table<int, int, bool>({{6, 1, false}, {10, 1, true}, {12, 2, false}}));
  const Layer layer{.height = height, .stride = stride, .residual = residual};
  check_right(layer);
  CHECK(cudnn.convolutions == 2);
  CHECK(warnings.empty());
  // Not compared again: now it could do what it wants. And frames more or less are the same shape.
  cudnn.convolution_factor = 3;
  Layer longer = layer;
  longer.frames = 5;
  CHECK(apart(run(longer, Device::cuda).first, run(longer, Device::cpu).first) > 1);
}

TEST_CASE("a convolution that cuDNN gets wrong runs on our own kernels, and a warning says so") {
  test::EmulatedCudnn& cudnn = fresh();
  cudnn.convolution_factor = 1.1f;
  const Layer layer{.height = 14};
  check_right(layer);
  REQUIRE(warnings.size() == 2);
  CHECK_THAT(warnings[0], Catch::StartsWith("a convolution 3x3 from 8 to 16 channels of 14x8"));
  CHECK_THAT(warnings[0], Catch::Contains("its result differs by"));
  cudnn.convolution_factor = 1;
  check_right(layer);
  CHECK(cudnn.convolutions == 2);  // not asked again
}

TEST_CASE("a convolution that cuDNN has no engine for runs on our own kernels") {
  test::EmulatedCudnn& cudnn = fresh();
  cudnn.convolution_fails = true;
  check_right({.height = 16});
  REQUIRE(warnings.size() == 2);
  CHECK_THAT(warnings[0], Catch::Contains("cuDNN has no engine"));
}

TEST_CASE("where our own convolution is not finite, that is said once, and tried again") {
  test::EmulatedCudnn& cudnn = fresh();
  cudnn.convolution_factor = 3;
  for (int i = 0; i < 2; ++i)
    run({.height = 24, .infinite = true}, Device::cuda);
  const auto said = [](const char* what) {
    return std::ranges::count_if(
        warnings, [&](const std::string& w) { return w.find(what) != std::string::npos; });
  };
  CHECK(said("is not finite") == 1);
  check_right({.height = 24});
  CHECK(said("its result differs by") == 2);  // forward too, which was not decided before
}

TEST_CASE("zeros prove nothing, and what is not for cuDNN is not asked of it") {
  test::EmulatedCudnn& cudnn = fresh();
  cudnn.convolution_factor = 3;
  run({.height = 18, .zero = true}, Device::cuda);
  CHECK(cudnn.convolutions == 2);
  CHECK(warnings.empty());
  check_right({.height = 18});  // compared now, and refused
  CHECK(warnings.size() == 2);
  cudnn.convolutions = 0;
  check_right({.height = 20, .dtype = DType::f32});
  check_right({.height = 20, .in = 4});
  set_deterministic(true);
  check_right({.height = 20});
  set_deterministic(false);
  cudnn.missing = "there is none";
  check_right({.height = 20});
  CHECK(cudnn.convolutions == 0);
}

TEST_CASE("the memory that is counted is that of both bodies, whose results are compared") {
  fresh();
  const Layer layer{.height = 22, .in = 64, .out = 64, .residual = true};
  const MetaAccount account(Device::cuda);
  run(layer, Device::meta);
  const auto counted = static_cast<double>(account.memory().peak);
  reset_cuda_peak();
  const auto before = static_cast<double>(cuda_memory().current);
  run(layer, Device::cuda);
  CHECK(counted == Approx(static_cast<double>(cuda_memory().peak) - before).epsilon(0.03));
}

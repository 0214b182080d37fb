// Layer norm against double, under each instruction set.
// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/layer_norm.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "ops/check.h"
#include "ops/norm/modulate.h"
#include "ops/norm/norm_kernels.h"
#include "ops/pointwise/activations.h"
#include "ops/pointwise/cast.h"
#include "tensor/meta.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

constexpr float kEpsilon = 1e-5f;

/// The textbook, in double.
std::vector<double> layer_norm_in_double(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                         double epsilon) {
  const auto n = static_cast<std::size_t>(x.size(1));
  std::vector<double> y;
  for (std::size_t row = 0; row < x.floats().size(); row += n) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < n; ++i)
      mean += x.floats()[row + i] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      variance += std::pow(x.floats()[row + i] - mean, 2) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      y.push_back((x.floats()[row + i] - mean) / std::sqrt(variance + epsilon) *
                      weight.floats()[i] +
                  bias.floats()[i]);
  }
  return y;
}

double layer_norm_error(const Tensor& x, float epsilon) {
  const Tensor weight = noise_tensor({x.size(1)}, 71), bias = noise_tensor({x.size(1)}, 72);
  Tape silent(false);
  const Tensor y = layer_norm(silent, x, weight, bias, epsilon);
  CHECK(y.shape() == x.shape());
  const std::vector<double> expected = layer_norm_in_double(x, weight, bias, epsilon);
  double worst = 0, largest = 1;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(y.floats()[i])) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, std::abs(y.floats()[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return worst / largest;
}

Tensor scaled_noise(Shape shape, std::uint64_t key, float mean, float deviation) {
  const Tensor x = noise_tensor(std::move(shape), key);
  for (float& v : x.floats())
    v = mean + deviation * v;
  return x;
}

}  // namespace

TEST_CASE("layer norm is (x - mean) / sqrt(variance + epsilon) weight + bias") {
  each_isa([&] {
    for (const std::int64_t width : {1, 2, 5, 15, 16, 17, 31, 33, 64, 384, 768, 1027, 4096})
      for (const std::int64_t rows : {0, 1, 3}) {
        INFO(rows << " x " << width);
        CHECK(layer_norm_error(noise_tensor({rows, width}, 1), kEpsilon) < 1e-6);
        // An epsilon as large as the variance.
        CHECK(layer_norm_error(scaled_noise({rows, width}, 2, 0.5f, 1e-3f), 1e-6f) < 1e-6);
      }
  });
}

TEST_CASE("layer norm is as exact where the mean is far larger than the deviation") {
  each_isa([&] {
    for (const std::int64_t width : {7, 16, 257, 1024, 3072})
      for (const float mean : {1e4f, -1e4f, 1e6f, 3e7f}) {
        INFO(width << " about " << mean);
        // Of 3e7 the neighbours are 2 away.
        const float deviation = mean > 1e7f ? 100.f : 1.f;
        CHECK(layer_norm_error(scaled_noise({4, width}, 3, mean, deviation), 1e-6f) < 1e-6);
        // Nor does it matter which number is the first.
        const Tensor x = scaled_noise({4, width}, 4, mean, deviation);
        for (std::int64_t row = 0; row < 4; ++row)
          x.data<float>()[row * width] = -3 * mean;
        CHECK(layer_norm_error(x, 1e-6f) < 1e-6);
      }
  });
}

TEST_CASE("layer norm of equal numbers is the bias, to the bit") {
  Tape silent(false);
  each_isa([&] {
    for (const std::int64_t width : {1, 3, 16, 19, 1000})
      for (const float constant : {0.f, 0.1f, -12345.678f, 1e30f, 1e-30f}) {
        INFO(width << " times " << constant);
        const Tensor x({2, width}), weight = noise_tensor({width}, 5),
                                    bias = noise_tensor({width}, 6);
        for (float& v : x.floats())
          v = constant;
        const Tensor y = layer_norm(silent, x, weight, bias, 1e-12f);
        for (std::size_t i = 0; i < y.floats().size(); ++i)
          CHECK(y.floats()[i] == bias.floats()[i % static_cast<std::size_t>(width)]);
      }
  });
}

TEST_CASE("a NaN or an infinity makes its row of a layer norm NaN, and no other") {
  Tape silent(false);
  each_isa([&] {
    for (const std::int64_t width : {5, 40})
      for (const float hard :
           {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
            -std::numeric_limits<float>::infinity()})
        for (const std::int64_t column : {std::int64_t{0}, std::int64_t{2}, width - 1}) {
          const Tensor clean = noise_tensor({3, width}, 7), weight = noise_tensor({width}, 8),
                       bias = noise_tensor({width}, 9), x = clean.clone();
          x.data<float>()[width + column] = hard;
          const Tensor y = layer_norm(silent, x, weight, bias, kEpsilon);
          const Tensor expected = layer_norm(silent, clean, weight, bias, kEpsilon);
          for (std::int64_t i = 0; i < 3 * width; ++i)
            if (i / width == 1)
              CHECK(std::isnan(y.data<float>()[i]));
            else
              CHECK(y.data<float>()[i] == expected.data<float>()[i]);
        }
  });
}

TEST_CASE("layer norm has the same bits on any number of threads, and for a row alone") {
  Tape silent(false);
  const std::int64_t rows = 67, width = 771;
  const Tensor x = noise_tensor({rows, width}, 10), weight = noise_tensor({width}, 11),
               bias = noise_tensor({width}, 12);
  const auto same = [](const Tensor& a, const Tensor& b) {
    return std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  };
  const int threads = omp_get_max_threads();
  each_isa([&] {
    const Tensor y = layer_norm(silent, x, weight, bias, kEpsilon);
    for (const int n : {1, 3, 8}) {
      omp_set_num_threads(n);
      CHECK(same(layer_norm(silent, x, weight, bias, kEpsilon), y));
    }
    omp_set_num_threads(threads);
    for (const std::int64_t row : {0, 40, 66})
      CHECK(same(layer_norm(silent, x.rows(row, row + 1), weight, bias, kEpsilon),
                 y.rows(row, row + 1)));
  });
}

TEST_CASE("layer norm's kernel writes its rows alone, which may be x") {
  each_isa([&] {
    for (const std::int64_t rows : {0, 1, 3})
      for (const std::int64_t width : {0, 1, 16, 37}) {
        INFO(rows << " x " << width);
        const Tensor whole = noise_tensor({rows * width + 2}, 16),
                     weight = noise_tensor({width}, 17), bias = noise_tensor({width}, 18);
        const Tensor some = whole.clone();
        LayerNormArgs args;
        args.rows = rows, args.width = width, args.epsilon = kEpsilon;
        args.weight = weight.data<float>(), args.bias = bias.data<float>();
        args.x = args.y = some.data<float>() + 1;
        cpu::layer_norm_forward(args);
        CHECK(some.floats().front() == whole.floats().front());
        CHECK(some.floats().back() == whole.floats().back());
        Tape silent(false);
        const Tensor x = whole.rows(1, rows * width + 1).clone().reshape({rows, width});
        const Tensor y = layer_norm(silent, x, weight, bias, kEpsilon);
        CHECK(std::equal(y.floats().begin(), y.floats().end(), some.floats().begin() + 1));
      }
  });
}

TEST_CASE("layer norm's gradients of x, weight and bias") {
  each_isa([&] {
    for (const std::int64_t width : {5, 16, 37})
      for (const std::int64_t rows : {1, 70}) {  // one chunk and three
        INFO(rows << " x " << width);
        const Tensor x = noise_tensor({rows, width}, 1), weight = noise_tensor({width}, 2),
                     bias = noise_tensor({width}, 3);
        const auto normed = [&](Tape& t) { return layer_norm(t, x, weight, bias, kEpsilon); };
        check_gradients({x, weight, bias}, [&](Tape& t) { return silu(t, normed(t)); });
        check_gradients({bias}, normed);
        check_gradients({x}, normed);
        // The formula in double.
        const Tensor dy = noise_tensor({rows, width}, 4);
        const std::vector<Tensor> got = gradients({x, weight, bias}, dy, normed);
        std::vector<double> dweight(static_cast<std::size_t>(width)), dbias = dweight;
        double worst = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
          const float *const at = x.data<float>() + row * width,
                             *d = dy.data<float>() + row * width;
          const auto mean_of = [&](const auto& of) {
            double sum = 0;
            for (std::int64_t i = 0; i < width; ++i)
              sum += of(i);
            return sum / static_cast<double>(width);
          };
          const double mean = mean_of([&](std::int64_t i) { return double{at[i]}; });
          const double variance =
              mean_of([&](std::int64_t i) { return std::pow(at[i] - mean, 2); });
          const double r = 1 / std::sqrt(variance + double{kEpsilon});
          const auto n = [&](std::int64_t i) { return (at[i] - mean) * r; };
          const auto g = [&](std::int64_t i) { return double{d[i]} * weight.data<float>()[i]; };
          const double gradient = mean_of(g);
          const double product = mean_of([&](std::int64_t i) { return g(i) * n(i); });
          for (std::int64_t i = 0; i < width; ++i) {
            worst = std::max(worst, std::abs(r * (g(i) - gradient - n(i) * product) -
                                             got[0].data<float>()[row * width + i]));
            dweight[static_cast<std::size_t>(i)] += double{d[i]} * n(i);
            dbias[static_cast<std::size_t>(i)] += double{d[i]};
          }
        }
        CHECK(worst < 2e-5);
        CHECK(vfm::distance(got[1].floats(), dweight) < 1e-5);
        CHECK(vfm::distance(got[2].floats(), dbias) < 1e-5);
      }
  });
  // A gradient of bf16, from a product in bf16.
  const Tensor x = noise_tensor({40, 24}, 1), weight = noise_tensor({24}, 2),
               bias = noise_tensor({24}, 3), dy = noise_tensor({40, 24}, 4, DType::bf16);
  const auto of = [&](bool low) {
    return gradients({x, weight, bias}, low ? dy : dy.to(DType::f32), [&](Tape& t) {
      const Tensor y = layer_norm(t, x, weight, bias, kEpsilon);
      return low ? cast(t, y, DType::bf16) : y;
    });
  };
  const std::vector<Tensor> low = of(true), plain = of(false);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(distance(low[i], plain[i]) < 1e-6);
}

TEST_CASE("layer norm's gradients have the same bits on any number of threads") {
  const std::int64_t rows = 200, width = 130;
  const Tensor x = noise_tensor({rows, width}, 1), weight = noise_tensor({width}, 2),
               bias = noise_tensor({width}, 3), dy = noise_tensor({rows, width}, 4);
  const auto run = [&] {
    return gradients({x, weight, bias}, dy,
                     [&](Tape& t) { return layer_norm(t, x, weight, bias, kEpsilon); });
  };
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::vector<Tensor> alone = run();
  omp_set_num_threads(3);
  const std::vector<Tensor> three = run();
  omp_set_num_threads(threads);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(std::memcmp(alone[i].raw(), three[i].raw(), alone[i].bytes()) == 0);
}

TEST_CASE("a modulation of zeros is the layer norm without weight and bias") {
  const Tensor x = noise_tensor({6, 40}, 1), dy = noise_tensor({6, 40}, 2);
  const Tensor ones({40}), zeros = Tensor::zeros({40});
  std::ranges::fill(ones.floats(), 1.f);
  ModulateInput in;
  in.x = x;
  in.modulation = Tensor::zeros({1, 80});
  in.rows = RowMap(std::vector<std::int32_t>(6, 0), Device::cpu);
  in.epsilon = kEpsilon;
  const auto modulated =
      gradients({x}, dy, [&](Tape& t) { return gated_residual_layernorm_modulate(t, in).normed; });
  const auto normed =
      gradients({x}, dy, [&](Tape& t) { return layer_norm(t, x, ones, zeros, kEpsilon); });
  CHECK(distance(modulated[0], normed[0]) < 1e-5);
  Tape silent(false);
  CHECK(distance(gated_residual_layernorm_modulate(silent, in).normed,
                 layer_norm(silent, x, ones, zeros, kEpsilon)) < 1e-5);
}

TEST_CASE("layer norm refuses what does not fit") {
  Tape silent(false);
  const Tensor x = noise_tensor({3, 8}, 13), w = noise_tensor({8}, 14), b = noise_tensor({8}, 15);
  CHECK_NOTHROW(layer_norm(silent, x, w, b, kEpsilon));
  const auto refused = [&](const Tensor& of, const Tensor& weight, const Tensor& bias,
                           const char* why) {
    CHECK_THROWS_WITH(layer_norm(silent, of, weight, bias, kEpsilon), Catch::Contains(why));
  };
  refused(x, noise_tensor({7}, 1), b, "do not fit");
  refused(x, w, noise_tensor({9}, 1), "do not fit");
  refused(x, noise_tensor({1, 8}, 1), b, "do not fit");
  refused(noise_tensor({24}, 1), w, b, "not a matrix");
  refused(x.to(DType::bf16), w, b, "all are f32");
  refused(x, w.to(DType::bf16), b, "all are f32");
  refused(x, w, b.to(DType::bf16), "all are f32");
  refused(x, Tensor({8}, DType::f32, Device::meta), b, "different devices");
  refused(x, w, Tensor({8}, DType::f32, Device::meta), "different devices");
}

// What Wan's video autoencoder has between its convolutions, against formulas in double, on every
// instruction set; and convolutions with arranged weights.
// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/pixel_norm.h"

#include <algorithm>

#include "base/error.h"
#include "ops/check.h"
#include "ops/conv/conv2d.h"
#include "ops/conv/conv2d_plain.h"
#include "ops/conv/resample.h"

using namespace vfm;
using namespace vfm::ops;

TEST_CASE("the norm of a pixel is over its channels alone, with or without SiLU") {
  for (const std::int64_t channels : {1, 3, 17, 96})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Tensor given = noise_tensor({2, 5, channels}, 1, dtype).clone();
      const Tensor x = given.to(DType::f32), weight = noise_tensor({channels, 1, 1, 1}, 2);
      std::fill_n(x.data<float>() + 3 * channels, channels, 0.f);
      const Tensor low = x.to(dtype).clone();
      for (const bool silu : {false, true}) {
        const Tensor expected(x.shape());
        for (std::int64_t p = 0; p < 10; ++p) {
          const float* const from = x.data<float>() + p * channels;
          double squares = 0;
          for (std::int64_t i = 0; i < channels; ++i)
            squares += double{from[i]} * from[i];
          const double r =
              std::sqrt(static_cast<double>(channels)) / std::max(std::sqrt(squares), 1e-12);
          for (std::int64_t i = 0; i < channels; ++i) {
            const double n = from[i] * r * weight.floats()[static_cast<std::size_t>(i)];
            expected.data<float>()[p * channels + i] =
                static_cast<float>(silu ? n / (1 + std::exp(-n)) : n);
          }
        }
        each_isa([&] {
          const Tensor y(x.shape(), dtype), same = low.clone();
          pixel_norm(low, weight, silu, y);
          CHECK(distance(y, expected) < (dtype == DType::f32 ? 1e-6 : 1e-2));
          pixel_norm(same, weight, silu, same);
          CHECK(distance(same, y) == 0);
        });
      }
    }
  const Tensor x = noise_tensor({2, 4}, 1);
  CHECK_THROWS_AS(pixel_norm(x, noise_tensor({3}, 2), true, x), Error);
  CHECK_THROWS_AS(pixel_norm(x, noise_tensor({4}, 2), true, Tensor({2, 4}, DType::bf16)), Error);
}

TEST_CASE("patches become channels by means, and channels patches by repetition, frame by frame") {
  struct Sizes {
    std::int64_t rows, columns, fine, coarse;
    PatchShape patch;
  };
  for (const Sizes& s : {Sizes{3, 2, 4, 8, {2, 2}}, Sizes{2, 3, 6, 6, {1, 2}},
                         Sizes{2, 2, 4, 2, {1, 1}}, Sizes{1, 2, 5, 40, {2, 2}}}) {
    const std::int64_t side = s.patch.space, group = s.fine * s.patch.pixels() / s.coarse;
    const Tensor coarse = noise_tensor({s.rows, s.columns, s.coarse}, 1);
    const Shape fine{s.rows * side, s.columns * side, s.fine};
    std::vector<Tensor> frames, repeated;
    std::vector<double> means(static_cast<std::size_t>(coarse.elements()));
    for (int t = 0; t < s.patch.frames; ++t) {
      frames.push_back(noise_tensor(fine, static_cast<std::uint64_t>(2 + t)));
      repeated.emplace_back(fine);
    }
    for (std::int64_t row = 0; row < s.rows; ++row)
      for (std::int64_t column = 0; column < s.columns; ++column)
        for (std::int64_t i = 0; i < s.fine * s.patch.pixels(); ++i) {
          const std::int64_t pixel = i % s.patch.pixels(), inside = pixel % (side * side);
          const auto t = static_cast<std::size_t>(pixel / (side * side));
          const std::int64_t y = row * side + inside / side, x = column * side + inside % side;
          const std::int64_t at = (y * fine[1] + x) * s.fine + i / s.patch.pixels();
          const std::int64_t from = (row * s.columns + column) * s.coarse + i / group;
          means[static_cast<std::size_t>(from)] +=
              double{frames[t].data<float>()[at]} / static_cast<double>(group);
          repeated[t].data<float>()[at] = coarse.data<float>()[from];
        }
    each_isa([&] {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const Tensor pooled(coarse.shape(), dtype);
        for (int t = 0; t < s.patch.frames; ++t) {
          const auto at = static_cast<std::size_t>(t);
          pool_patches(frames[at].to(dtype), pooled, s.patch, t);
          const Tensor made(fine, dtype);
          repeat_patches(coarse.to(dtype), made, s.patch, t);
          CHECK(distance(made, repeated[at]) < (dtype == DType::f32 ? 1e-30 : 1e-2));
        }
        CHECK(distance(pooled.to(DType::f32).floats(), means) <
              (dtype == DType::f32 ? 1e-6 : 1e-2));
      }
    });
  }
  const Tensor fine({4, 4, 3}), coarse({2, 2, 5});
  CHECK_THROWS_AS(pool_patches(fine, coarse, {1, 2}, 0), Error);
  CHECK_THROWS_AS(repeat_patches(Tensor({2, 2, 4}), fine, {1, 2}, 1), Error);
}

TEST_CASE("arranged weights give the convolution of the others") {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const std::int64_t frames : {1, 3}) {
      Conv2d c;
      c.frames = frames, c.kernel_frames = frames, c.height = 5, c.width = 6, c.in = 4, c.out = 3;
      c.kernel_height = c.kernel_width = 3;
      c.pad_top = c.pad_left = c.pad_right = 1;
      c.x_step = c.x_size();
      const Tensor x = noise_tensor({c.x_size()}, 1, dtype), bias = noise_tensor({c.out}, 3);
      const Tensor w = noise_tensor({c.out, c.in, frames, 3, 3}, 2, dtype).clone();
      const Tensor y({c.y_step()}, dtype), arranged({c.y_step()}, dtype),
          plain({c.y_step()}, dtype);
      conv2d(Device::cpu, c, dtype, x.raw(), w.raw(), bias.data<float>(), nullptr, y.raw());
      arrange_weights(w);
      c.weights_last = true;
      conv2d(Device::cpu, c, dtype, x.raw(), w.raw(), bias.data<float>(), nullptr, arranged.raw());
      conv2d_plain(c, dtype, x.raw(), w.raw(), bias.data<float>(), nullptr, plain.raw());
      CHECK(distance(arranged, y) < (dtype == DType::f32 ? 1e-6 : 1e-2));
      CHECK(distance(plain, y) < (dtype == DType::f32 ? 1e-6 : 1e-2));
      CHECK_THROWS_AS(
          conv2d_backward_data(Device::cpu, c, dtype, y.raw(), w.raw(), x.clone().raw()), Error);
    }
}

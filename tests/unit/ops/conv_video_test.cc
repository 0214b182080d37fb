// Convolutions of videos with any kernel against loops in double: results, gradients, chunks, and
// what is counted of them.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <vector>

#include "base/error.h"
#include "ops/check.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv2d.h"
#include "ops/conv/conv2d_plain.h"
#include "tensor/allocator.h"
#include "tensor/meta.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

using Triple = std::array<std::int64_t, 3>;

struct VideoCase {
  Triple size, kernel;  // frames, rows, columns
  Triple stride{1, 1, 1}, before{}, after{};
  std::int64_t history = 0, in = 3, out = 5;
};

// One multiply-add for each element of the weights and pixel of the result that lie over the video:
// step(place in the result, in the video, in the weights).
template <class Step>
void each_step(const VideoCase& c, const Triple& result, const Step& step) {
  const Triple size{c.size[0] + c.history, c.size[1], c.size[2]};
  for (std::int64_t t = 0; t < result[0]; ++t)
    for (std::int64_t y = 0; y < result[1]; ++y)
      for (std::int64_t x = 0; x < result[2]; ++x)
        for (std::int64_t a = 0; a < c.kernel[0]; ++a)
          for (std::int64_t b = 0; b < c.kernel[1]; ++b)
            for (std::int64_t d = 0; d < c.kernel[2]; ++d) {
              const std::int64_t u = t * c.stride[0] - c.before[0] + a,
                                 v = y * c.stride[1] - c.before[1] + b,
                                 w = x * c.stride[2] - c.before[2] + d;
              if (u < 0 || u >= size[0] || v < 0 || v >= size[1] || w < 0 || w >= size[2]) continue;
              const std::int64_t from = ((u * size[1] + v) * size[2] + w) * c.in,
                                 to = ((t * result[1] + y) * result[2] + x) * c.out;
              for (std::int64_t o = 0; o < c.out; ++o)
                for (std::int64_t i = 0; i < c.in; ++i)
                  step(static_cast<std::size_t>(to + o), static_cast<std::size_t>(from + i),
                       static_cast<std::size_t>(
                           (((o * c.in + i) * c.kernel[0] + a) * c.kernel[1] + b) * c.kernel[2] +
                           d));
            }
}

Triple result_of(const VideoCase& c) {
  Triple result{};
  for (std::size_t d = 0; d < 3; ++d)
    result[d] = (c.size[d] + (d == 0 ? c.history : 0) + c.before[d] + c.after[d] - c.kernel[d]) /
                    c.stride[d] +
                1;
  return result;
}

Tensor single(const std::vector<double>& values, Shape shape) {
  return Tensor::from(std::vector<float>(values.begin(), values.end()), std::move(shape));
}

// History and x in one.
Tensor video_of(const Tensor& history, const Tensor& x) {
  if (!history.defined()) return x;
  const Tensor both({history.size(0) + x.size(0), x.size(1), x.size(2), x.size(3)});
  copy(history, both.rows(0, history.size(0)));
  copy(x, both.rows(history.size(0), both.size(0)));
  return both;
}

void check_case(const VideoCase& c, DType dtype, bool with_bias) {
  const auto rounded = [&](const Shape& shape, std::uint64_t seed) {
    return noise_tensor(shape, seed, dtype).to(DType::f32);  // what both compute with
  };
  const Tensor x = rounded({c.size[0], c.size[1], c.size[2], c.in}, 1),
               w = rounded({c.out, c.in, c.kernel[0], c.kernel[1], c.kernel[2]}, 2);
  const Tensor bias = with_bias ? noise_tensor({c.out}, 3) : Tensor();
  const Tensor history =
      c.history > 0 ? rounded({c.history, c.size[1], c.size[2], c.in}, 4) : Tensor();
  const Triple r = result_of(c);
  const Shape shape{r[0], r[1], r[2], c.out};
  const Tensor residual = rounded(shape, 5), dy = rounded(shape, 6);

  const Tensor all = video_of(history, x);
  std::vector<double> y, dall(all.floats().size()), dw(w.floats().size()),
      db(static_cast<std::size_t>(c.out));
  for (std::size_t i = 0; i < dy.floats().size(); ++i) {
    const std::size_t o = i % db.size();
    y.push_back(double{residual.floats()[i]} + (with_bias ? bias.floats()[o] : 0));
    db[o] += dy.floats()[i];
  }
  each_step(c, r, [&](std::size_t to, std::size_t from, std::size_t weight) {
    y[to] += double{all.floats()[from]} * w.floats()[weight];
    dall[from] += double{dy.floats()[to]} * w.floats()[weight];
    dw[weight] += double{dy.floats()[to]} * all.floats()[from];
  });

  VideoConv how{c.stride, c.before, c.after};
  how.history = history.defined() ? history.to(dtype) : history;
  how.residual = residual.to(dtype);
  const Tensor lx = x.to(dtype).clone(), lw = w.to(dtype).clone();
  const Tensor gx = Tensor::zeros(x.shape()), gw = Tensor::zeros(w.shape()),
               gb = Tensor::zeros({c.out}), gr = Tensor::zeros(shape);
  Tape tape;
  tape.watch(lx, gx);
  tape.watch(lw, gw);
  tape.watch(how.residual, gr);
  if (with_bias) tape.watch(bias, gb);
  const Tensor made = conv_video(tape, lx, lw, bias, how);
  const double near = dtype == DType::f32 ? 1e-5 : 1e-2;
  REQUIRE(made.shape() == shape);
  CHECK(made.dtype() == dtype);
  CHECK(distance(made, single(y, shape)) < near);
  tape.backward(made, dy.to(dtype));
  CHECK(distance(gx, single(dall, all.shape()).rows(c.history, all.size(0))) < near);
  CHECK(distance(gw, single(dw, w.shape())) < near);
  CHECK(distance(gr, dy) == 0);
  if (with_bias) CHECK(distance(gb, single(db, {c.out})) < near);
}

const std::vector<VideoCase> kVideoCases = {
    {.size = {4, 5, 6}, .kernel = {3, 3, 3}, .before = {2, 1, 1}, .after = {0, 1, 1}},
    {.size = {4, 5, 6}, .kernel = {3, 3, 3}, .before = {1, 1, 1}, .after = {1, 1, 1}},
    {.size = {2, 5, 6}, .kernel = {3, 3, 3}, .before = {0, 1, 1}, .after = {0, 1, 1}, .history = 2},
    {.size = {3, 4, 4}, .kernel = {3, 3, 3}, .before = {1, 1, 1}, .after = {0, 1, 1}, .history = 1},
    {.size = {1, 4, 4}, .kernel = {3, 3, 3}, .before = {2, 1, 1}, .after = {0, 1, 1}},
    {.size = {5, 6, 8},
     .kernel = {3, 3, 3},
     .stride = {2, 2, 2},
     .before = {2, 0, 0},
     .after = {0, 1, 1}},
    {.size = {6, 7, 5},
     .kernel = {3, 3, 3},
     .stride = {2, 1, 2},
     .before = {1, 1, 1},
     .after = {1, 1, 1}},
    {.size = {5, 4, 3}, .kernel = {3, 1, 1}, .before = {2, 0, 0}},
    {.size = {5, 4, 3}, .kernel = {3, 1, 1}, .before = {1, 0, 0}, .after = {1, 0, 0}},
    {.size = {4, 4, 3}, .kernel = {3, 1, 1}, .stride = {2, 1, 1}, .history = 1},
    {.size = {3, 6, 8}, .kernel = {1, 3, 3}, .stride = {1, 2, 2}, .after = {0, 1, 1}},
    {.size = {3, 5, 4}, .kernel = {1, 3, 3}, .before = {0, 1, 1}, .after = {0, 1, 1}},
    {.size = {5, 4, 6},
     .kernel = {1, 3, 3},
     .stride = {2, 2, 1},
     .before = {0, 1, 1},
     .after = {0, 1, 1}},
    {.size = {3, 4, 5}, .kernel = {1, 1, 1}},
    {.size = {5, 4, 6}, .kernel = {1, 1, 1}, .stride = {2, 2, 2}},
    {.size = {5, 9, 8}, .kernel = {5, 3, 7}, .before = {4, 1, 3}, .after = {0, 1, 3}},
    {.size = {2, 3, 3}, .kernel = {5, 5, 5}, .before = {2, 2, 2}, .after = {2, 2, 2}},
    {.size = {3, 6, 6},
     .kernel = {3, 3, 3},
     .before = {2, 1, 1},
     .after = {0, 1, 1},
     .in = 16,
     .out = 24}};

}  // namespace

TEST_CASE("a convolution of a video and its gradients are those of a loop") {
  for (const VideoCase& c : kVideoCases)
    for (const DType dtype : {DType::f32, DType::bf16}) {
      INFO("kernel " << to_string({c.kernel[0], c.kernel[1], c.kernel[2]}) << ", stride "
                     << to_string({c.stride[0], c.stride[1], c.stride[2]}) << ", history "
                     << c.history << ", " << dtype_name(dtype));
      check_case(c, dtype, c.kernel[1] != 5);
    }
}

TEST_CASE("padding keeps the size, around or before, and a history takes the place of zeros") {
  Tape silent(false);
  const Tensor x = noise_tensor({5, 6, 4, 3}, 1), w = noise_tensor({7, 3, 3, 3, 5}, 2),
               bias = noise_tensor({7}, 3);
  const auto is = [](const VideoConv& how, Triple before, Triple after) {
    return how.before == before && how.after == after && how.stride == Triple{1, 1, 1};
  };
  CHECK(is(padded_around(w), {1, 1, 2}, {1, 1, 2}));
  CHECK(is(padded_before(w), {2, 1, 2}, {0, 1, 2}));
  CHECK(is(padded_before(w, x.rows(0, 1)), {1, 1, 2}, {0, 1, 2}));
  CHECK(conv_video(silent, x, w, bias, padded_around(w)).shape() == Shape{5, 6, 4, 7});
  CHECK(conv_video(silent, x, w, bias, padded_before(w)).shape() == Shape{5, 6, 4, 7});
}

TEST_CASE("a video in chunks, each with the frames before it, gives the same bits") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tape silent(false);
    const Tensor x = noise_tensor({7, 6, 4, 16}, 1, dtype),
                 w = noise_tensor({16, 16, 3, 3, 3}, 2, dtype), bias = noise_tensor({16}, 4);
    const Tensor whole = conv_video(silent, x, w, bias, padded_before(w));
    std::int64_t at = 0;
    for (const std::int64_t count : {1, 1, 3, 2}) {
      const Tensor history = x.rows(std::max<std::int64_t>(0, at - 2), at);
      const Tensor part =
          conv_video(silent, x.rows(at, at + count), w, bias, padded_before(w, history));
      CHECK(distance(part, whole.rows(at, at + count)) == 0);
      at += count;
    }
  }
}

TEST_CASE("a convolution of a video takes the memory that is counted, and no unfolded video") {
  constexpr std::int64_t kFrames = 9, kSide = 48, kIn = 32, kOut = 48;
  const auto pass = [&](Device device) {
    const auto noise = [&](const Shape& shape, std::uint64_t seed) {
      return device == Device::meta ? Tensor(shape, DType::f32, device) : noise_tensor(shape, seed);
    };
    const Tensor x = noise({kFrames, kSide, kSide, kIn}, 1), w = noise({kOut, kIn, 3, 3, 3}, 2),
                 bias = noise({kOut}, 3);
    Tape tape;
    const Tensor dx = Tensor::zeros(x.shape(), DType::f32, device),
                 dw = Tensor::zeros(w.shape(), DType::f32, device);
    tape.watch(x, dx);
    tape.watch(w, dw);
    const Tensor y = conv_video(tape, x, w, bias, padded_before(w));
    tape.backward(y, y.clone());
  };
  const MetaAccount account(Device::cpu);
  pass(Device::meta);
  const auto counted = static_cast<double>(account.memory().peak);
  const std::size_t before = cpu_memory().current;
  reset_memory_peak();
  pass(Device::cpu);
  const auto taken = static_cast<double>(cpu_memory().peak - before);
  CHECK(taken == Approx(counted).epsilon(0.03));
  const double pixels = kFrames * kSide * kSide;
  CHECK(taken < 4 * pixels * (3 * kIn + 3 * kOut) + 8e6);
  // Frames that see zeros are computed as if those were there.
  const double forward = 2 * pixels * kOut * kIn * 27;
  CHECK(account.work().flops == Approx(3 * forward).epsilon(1e-9));
}

TEST_CASE("what is no convolution of a video is refused") {
  Tape silent(false);
  const Tensor x = noise_tensor({2, 5, 6, 3}, 1), w = noise_tensor({4, 3, 3, 3, 3}, 2),
               bias = noise_tensor({4}, 3);
  CHECK_THROWS_WITH(conv_video(silent, x, w, bias), Catch::Contains("does not fit a video"));
  CHECK_THROWS_WITH(conv_video(silent, x, w, bias, {.before = {3, 1, 1}}),
                    Catch::Contains("does not fit a video"));
  CHECK_THROWS_WITH(conv_video(silent, x, w, bias, {.stride = {0, 1, 1}, .before = {2, 1, 1}}),
                    Catch::Contains("stride 0"));
  CHECK_THROWS_WITH(conv_video(silent, x, w, bias, padded_before(w, noise_tensor({1, 5, 5, 3}, 4))),
                    Catch::Contains("a history"));
  CHECK_THROWS_WITH(conv_video(silent, x, noise_tensor({4, 3, 3, 3}, 2), bias),
                    Catch::Contains("five dimensions"));
  CHECK_THROWS_WITH(conv_video(silent, x, noise_tensor({4, 2, 3, 3, 3}, 2), bias),
                    Catch::Contains("do not fit each other"));
}

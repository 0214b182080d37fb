// The convolutions of a video network against sums in double, and their gradients against slopes.
// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv.h"

#include "base/error.h"
#include "ops/check.h"
#include "ops/conv/conv2d.h"
#include "ops/conv/conv2d_plain.h"

using namespace vfm;
using namespace vfm::ops;

namespace {

struct Kernel {
  std::int64_t t, y, x;
};
struct Strides {
  std::int64_t t = 1, y = 1, x = 1;
};

// A convolution in three directions of the zero-padded `x`, the first sample at -pad.
Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& bias, Kernel k, Strides s,
                std::array<std::int64_t, 3> pad, Shape shape) {
  const Tensor y(shape);
  const std::int64_t in = x.size(3), out = w.size(0);
  const auto at = [&](std::int64_t t, std::int64_t r, std::int64_t c, std::int64_t i) {
    if (t < 0 || t >= x.size(0) || r < 0 || r >= x.size(1) || c < 0 || c >= x.size(2)) return 0.f;
    return x.floats()[((t * x.size(1) + r) * x.size(2) + c) * in + i];
  };
  std::size_t n = 0;
  for (std::int64_t t = 0; t < shape[0]; ++t)
    for (std::int64_t r = 0; r < shape[1]; ++r)
      for (std::int64_t c = 0; c < shape[2]; ++c)
        for (std::int64_t o = 0; o < out; ++o) {
          double sum = bias.floats()[o];
          for (std::int64_t i = 0; i < in; ++i)
            for (std::int64_t a = 0; a < k.t; ++a)
              for (std::int64_t b = 0; b < k.y; ++b)
                for (std::int64_t d = 0; d < k.x; ++d)
                  sum += double{w.floats()[(((o * in + i) * k.t + a) * k.y + b) * k.x + d]} *
                         at(t * s.t - pad[0] + a, r * s.y - pad[1] + b, c * s.x - pad[2] + d, i);
          y.floats()[n++] = static_cast<float>(sum);
        }
  return y;
}

Tensor joined(const Tensor& a, const Tensor& b) {
  Shape shape = a.shape();
  shape[0] += b.size(0);
  const Tensor both(shape, a.dtype());
  copy(a, both.rows(0, a.size(0)));
  copy(b, both.rows(a.size(0), shape[0]));
  return both;
}

Tensor sum(const Tensor& a, const Tensor& b) {
  const Tensor both = a.clone();
  for (std::size_t i = 0; i < both.floats().size(); ++i)
    both.floats()[i] += b.floats()[i];
  return both;
}

// Rows [begin, end) of each frame.
Tensor rows_of(const Tensor& x, std::int64_t begin, std::int64_t end) {
  Shape shape = x.shape();
  shape[1] = end - begin;
  const Tensor part(shape, x.dtype());
  const std::int64_t row = x.size(2) * x.size(3);
  for (std::int64_t t = 0; t < x.size(0); ++t)
    copy(x.reshape({x.size(0) * x.size(1), row}).rows(t * x.size(1) + begin, t * x.size(1) + end),
         part.reshape({shape[0] * shape[1], row}).rows(t * shape[1], (t + 1) * shape[1]));
  return part;
}

}  // namespace

TEST_CASE("a convolution in space pads with zeros, on both sides or, halving, at the end") {
  Tape silent(false);
  const Tensor x = noise_tensor({3, 6, 4, 5}, 1), w = noise_tensor({7, 5, 1, 3, 3}, 2),
               bias = noise_tensor({7}, 3);
  const Tensor same = convolve(x, w, bias, {1, 3, 3}, {}, {0, 1, 1}, {3, 6, 4, 7});
  CHECK(distance(conv_space(silent, x, w, bias), same) < 1e-5);
  const Tensor half = convolve(x, w, bias, {1, 3, 3}, {1, 2, 2}, {0, 0, 0}, {3, 3, 2, 7});
  CHECK(distance(conv_space(silent, x, w, bias, {.stride = 2}), half) < 1e-5);
  const Tensor residual = noise_tensor({3, 6, 4, 7}, 4);
  CHECK(distance(conv_space(silent, x, w, bias, {.residual = residual}), sum(same, residual)) <
        1e-5);
  CHECK(distance(conv_space(silent, x.to(DType::bf16), w.to(DType::bf16), bias,
                            {.residual = residual.to(DType::bf16)}),
                 sum(same, residual)) < 2e-2);
  CHECK_THROWS_AS(conv_space(silent, noise_tensor({1, 5, 4, 5}, 1), w, bias, {.stride = 2}), Error);
  CHECK_THROWS_AS(conv_space(silent, noise_tensor({1, 6, 4, 6}, 1), w, bias), Error);
}

TEST_CASE("rows of a neighbour stand where else there are zeros") {
  Tape silent(false);
  const Tensor x = noise_tensor({2, 8, 4, 5}, 1), w = noise_tensor({6, 5, 1, 3, 3}, 2),
               bias = noise_tensor({6}, 3);
  const Tensor whole = conv_space(silent, x, w, bias);
  const Tensor upper = conv_space(silent, rows_of(x, 0, 4), w, bias, {.halo_below = true});
  const Tensor middle =
      conv_space(silent, rows_of(x, 2, 7), w, bias, {.halo_above = true, .halo_below = true});
  const Tensor lower = conv_space(silent, rows_of(x, 5, 8), w, bias, {.halo_above = true});
  CHECK(distance(upper, rows_of(whole, 0, 3)) < 1e-6);
  CHECK(distance(middle, rows_of(whole, 3, 6)) < 1e-6);
  CHECK(distance(lower, rows_of(whole, 6, 8)) < 1e-6);
  const Tensor halved = conv_space(silent, x, w, bias, {.stride = 2});
  CHECK(distance(conv_space(silent, rows_of(x, 0, 5), w, bias, {.stride = 2, .halo_below = true}),
                 rows_of(halved, 0, 2)) < 1e-6);
}

TEST_CASE("trap 1: before its first frame a video goes on with that frame, not with zeros") {
  Tape silent(false);
  const Tensor x = noise_tensor({5, 3, 4, 6}, 1), w = noise_tensor({7, 6, 3, 1, 1}, 2),
               bias = noise_tensor({7}, 3);
  const Tensor point = noise_tensor({6, 6, 1, 3, 3}, 5), zero = Tensor::zeros({6});
  const Tensor made = conv_space(silent, x, point, zero);
  const Tensor with_lead = conv_space(silent, x, point, zero, {.lead = {2, {}}});
  const Tensor first = made.rows(0, 1);
  CHECK(distance(with_lead, joined(joined(first, first), made)) == 0);
  const Tensor expected = convolve(with_lead, w, bias, {3, 1, 1}, {}, {0, 0, 0}, {5, 3, 4, 7});
  CHECK(distance(conv_time(silent, with_lead, w, bias), expected) < 1e-5);
  const Tensor half = convolve(with_lead, w, bias, {3, 1, 1}, {2, 1, 1}, {0, 0, 0}, {3, 3, 4, 7});
  CHECK(distance(conv_time(silent, with_lead, w, bias, {.stride = 2}), half) < 1e-5);
  const Tensor square = noise_tensor({6, 6, 3, 1, 1}, 7), six = noise_tensor({6}, 8);
  CHECK(distance(conv_time(silent, with_lead, square, six, {.add_last = true}),
                 sum(conv_time(silent, with_lead, square, six), made)) < 1e-6);
}

TEST_CASE("frames one at a time give the same bits") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tape silent(false);
    const Tensor x = noise_tensor({5, 6, 4, 16}, 1, dtype),
                 w = noise_tensor({16, 16, 1, 3, 3}, 2, dtype),
                 wt = noise_tensor({16, 16, 3, 1, 1}, 3, dtype), bias = noise_tensor({16}, 4);
    const Tensor whole =
        conv_time(silent, conv_space(silent, x, w, bias, {.lead = {2, {}}}), wt, bias);
    Tensor history;
    for (std::int64_t t = 0; t < 5; ++t) {
      const Tensor padded = conv_space(silent, x.rows(t, t + 1), w, bias, {.lead = {2, history}});
      history = padded.rows(1, 3).clone();
      const Tensor y = conv_time(silent, padded, wt, bias);
      CHECK(distance(y, whole.rows(t, t + 1)) == 0);
    }
  }
}

TEST_CASE("gradients of the convolutions") {
  const Tensor x = noise_tensor({3, 4, 6, 3}, 1), w = noise_tensor({5, 3, 1, 3, 3}, 2),
               bias = noise_tensor({5}, 3);
  const Tensor residual = noise_tensor({3, 4, 6, 5}, 4), small = noise_tensor({3, 2, 3, 5}, 5);
  check_gradients({x, w, bias, residual}, [&](Tape& t) {
    return conv_space(t, x, w, bias, {.residual = residual, .lead = {2, {}}});
  });
  check_gradients({x, w, bias, small}, [&](Tape& t) {
    return conv_space(t, x, w, bias, {.stride = 2, .residual = small});
  });
  const Tensor wt = noise_tensor({3, 3, 3, 1, 1}, 6), three = noise_tensor({3}, 7);
  check_gradients({x, wt, three}, [&](Tape& t) { return conv_time(t, x, wt, three); });
  check_gradients({x, wt, three},
                  [&](Tape& t) { return conv_time(t, x, wt, three, {.add_last = true}); });
  const Tensor five = noise_tensor({5, 4, 6, 3}, 8);
  check_gradients({five, wt, three},
                  [&](Tape& t) { return conv_time(t, five, wt, three, {.stride = 2}); });
  const Tensor wp = noise_tensor({5, 3, 1, 1, 1}, 9);
  check_gradients({x, wp, bias, residual},
                  [&](Tape& t) { return conv_point(t, x, wp, bias, residual); });
}

TEST_CASE("gradients in bf16 are near those in f32") {
  const Tensor x = noise_tensor({3, 4, 6, 16}, 1), w = noise_tensor({16, 16, 1, 3, 3}, 2),
               bias = noise_tensor({16}, 3);
  const auto of = [&](DType dtype) {
    const Tensor lx = x.to(dtype), lw = w.to(dtype);
    Tape tape;
    const Tensor dx = Tensor::zeros(x.shape()), dw = Tensor::zeros(w.shape()),
                 db = Tensor::zeros({16});
    tape.watch(lx, dx);
    tape.watch(lw, dw);
    tape.watch(bias, db);
    const Tensor y = conv_space(tape, lx, lw, bias);
    tape.backward(y, noise_tensor(y.shape(), 9, dtype));
    return std::vector<Tensor>{dx, dw, db};
  };
  const auto fine = of(DType::f32), low = of(DType::bf16);
  for (std::size_t i = 0; i < fine.size(); ++i)
    CHECK(distance(low[i], fine[i]) < 2e-2);
}

TEST_CASE("convolutions by the library and by our own code agree") {
  Conv2d space;
  space.images = 2, space.height = 7, space.width = 9, space.in = 5, space.out = 11;
  space.kernel_height = space.kernel_width = 3, space.stride_y = space.stride_x = 2;
  space.pad_top = space.pad_right = 1;
  Conv2d video = space;
  video.frames = 5, video.kernel_frames = 3, video.stride_t = 2, video.pad_front = 2;
  for (Conv2d c : {space, video})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      c.x_step = c.x_size();
      INFO(c.frames << " frames, " << dtype_name(dtype));
      const double tolerance = dtype == DType::f32 ? 1e-5 : 1e-2;
      const Tensor x = noise_tensor({2, c.frames, 7, 9, 5}, 1, dtype),
                   w = noise_tensor({11, 5, c.kernel_frames, 3, 3}, 2, dtype),
                   bias = noise_tensor({11}, 3);
      const Shape shape{2, c.out_frames(), c.out_height(), c.out_width(), 11};
      const Tensor residual = noise_tensor(shape, 4, dtype), a(shape, dtype), b(shape, dtype);
      conv2d(Device::cpu, c, dtype, x.raw(), w.raw(), bias.data<float>(), residual.raw(), a.raw());
      conv2d_plain(c, dtype, x.raw(), w.raw(), bias.data<float>(), residual.raw(), b.raw());
      CHECK(distance(a, b) < tolerance);
      const Tensor dxa(x.shape(), dtype), dxb(x.shape(), dtype);
      conv2d_backward_data(Device::cpu, c, dtype, residual.raw(), w.raw(), dxa.raw());
      conv2d_backward_data_plain(c, dtype, residual.raw(), w.raw(), dxb.raw());
      CHECK(distance(dxa, dxb) < tolerance);
      const Tensor dwa = noise_tensor(w.shape(), 5), dwb = dwa.clone(), dba = noise_tensor({11}, 6),
                   dbb = dba.clone();
      conv2d_backward_weights(Device::cpu, c, dtype, x.raw(), residual.raw(), dwa.data<float>(),
                              dba.data<float>());
      conv2d_backward_weights_plain(c, dtype, x.raw(), residual.raw(), dwb.data<float>(),
                                    dbb.data<float>());
      CHECK(distance(dwa, dwb) < tolerance);
      CHECK(distance(dba, dbb) < tolerance);
    }
}

// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv.h"

#include <algorithm>

#include "base/error.h"
#include "ops/added_gradient.h"
#include "ops/conv/conv2d.h"
#include "ops/pointwise/add.h"
#include "tensor/device.h"

namespace vfm::ops {
namespace {

void check(const char* name, const Tensor& x, const Tensor& w, const Tensor& bias,
           const Shape& kernel) {
  const bool shapes = x.dims() == 4 && w.dims() == 5 && w.size(1) == x.size(3) &&
                      Shape{w.size(2), w.size(3), w.size(4)} == kernel &&
                      (!bias.defined() || bias.shape() == Shape{w.size(0)});
  if (!shapes)
    fail("{}: x {}, w {} and bias {} do not fit each other", name, to_string(x.shape()),
         to_string(w.shape()), to_string(bias.shape()));
  if (x.dtype() != w.dtype() || bias.dtype() != DType::f32)
    fail("{}: no convolution of {} with {} and {}", name, dtype_name(x.dtype()),
         dtype_name(w.dtype()), dtype_name(bias.dtype()));
  if (x.device() != w.device() || (bias.defined() && x.device() != bias.device()))
    fail("{}: x is on {}, w on {}, bias on {}", name, device_name(x.device()),
         device_name(w.device()), device_name(bias.device()));
}

void check_residual(const Tensor& residual, const Tensor& like) {
  if (!residual.defined()) return;
  if (residual.elements() != like.elements() || residual.dtype() != like.dtype() ||
      residual.device() != like.device())
    fail("cannot add {} {} to a convolution's {} {}", dtype_name(residual.dtype()),
         to_string(residual.shape()), dtype_name(like.dtype()), to_string(like.shape()));
}

// Everything that flows back through a convolution but for the residual. `read` is x with the
// frames that were put in front of it.
void backward(Tape& tape, const Conv2d& conv, const Tensor& dy, const Tensor& x, const Tensor& read,
              const Tensor& w, const Tensor& bias) {
  const Tensor low = dy.to(x.dtype());
  const AddedGradient dw(tape, w), dbias(tape, bias);
  if (dw.data() != nullptr || dbias.data() != nullptr)
    conv2d_backward_weights(x.device(), conv, x.dtype(), read.raw(), low.raw(), dw.data(),
                            dbias.data());
  dw.finish();
  dbias.finish();
  if (!tape.wants_grad(x)) return;
  const Tensor dx(read.shape(), x.dtype(), x.device());
  conv2d_backward_data(x.device(), conv, x.dtype(), low.raw(), w.raw(), dx.raw());
  tape.accumulate(x,
                  read.size(0) == x.size(0) ? dx : dx.rows(read.size(0) - x.size(0), dx.size(0)));
}

// A convolution of a whole video, as its gradients are computed. The forward pass goes frame by
// frame of the result: each has an image of its own, of the frames that it sees.
struct WholeVideo {
  Conv2d conv;
  std::int64_t frame = 0;  // elements of a frame of x
  // Where the kernel reaches over no rows and columns, the frames are the rows of an image whose
  // columns are pixels, which cuDNN convolves too.
  bool frames_as_rows = false;
  bool one_by_one = false;  // every frame is an image, in the gradients too

  WholeVideo(const Tensor& x, const Tensor& w, const VideoConv& how)
      : frame(x.size(1) * x.size(2) * x.size(3)) {
    Conv2d& c = conv;
    const auto [stride_t, stride_y, stride_x] = how.stride;
    c.in = x.size(3), c.out = w.size(0);
    c.x_step = x.elements();
    const bool in_time = w.size(3) == 1 && w.size(4) == 1 && stride_y == 1 && stride_x == 1 &&
                         how.before[1] == 0 && how.before[2] == 0 && how.after[1] == 0 &&
                         how.after[2] == 0;
    one_by_one = w.size(2) == 1 && stride_t == 1;
    frames_as_rows = in_time && !one_by_one;
    if (frames_as_rows) {
      c.height = x.size(0), c.width = x.size(1) * x.size(2);
      c.kernel_height = w.size(2), c.stride_y = stride_t;
      c.pad_top = how.before[0], c.pad_bottom = how.after[0];
      return;
    }
    c.height = x.size(1), c.width = x.size(2);
    c.kernel_height = w.size(3), c.kernel_width = w.size(4);
    c.stride_y = stride_y, c.stride_x = stride_x;
    c.pad_top = how.before[1], c.pad_bottom = how.after[1];
    c.pad_left = how.before[2], c.pad_right = how.after[2];
    if (one_by_one) {
      c.images = x.size(0), c.x_step = frame;
      return;
    }
    c.frames = x.size(0), c.kernel_frames = w.size(2), c.stride_t = stride_t;
    c.pad_front = how.before[0], c.pad_back = how.after[0];
  }

  Shape result(const Tensor& x) const {
    const std::int64_t frames = one_by_one       ? conv.images
                                : frames_as_rows ? conv.out_height()
                                                 : conv.out_frames();
    return {frames, frames_as_rows ? x.size(1) : conv.out_height(),
            frames_as_rows ? x.size(2) : conv.out_width(), conv.out};
  }

  // Calls run(convolution, first frame of x, first frame of the result) for frames of the result
  // that all see as many frames.
  template <class Run>
  void each_run(const VideoConv& how, std::int64_t x_frames, std::int64_t kernel,
                std::int64_t frames, const Run& run) const {
    if (one_by_one) return run(conv, 0, 0);
    for (std::int64_t i = 0; i < frames;) {
      const auto sees = [&](std::int64_t at) { return at * how.stride[0] - how.before[0]; };
      const std::int64_t first = std::max<std::int64_t>(sees(i), 0);
      const std::int64_t end = std::min(sees(i) + kernel, x_frames);
      Conv2d c = conv;
      c.x_step = how.stride[0] * frame;
      if (end - first == kernel)
        while (i + c.images < frames && sees(i + c.images) + kernel <= x_frames)
          ++c.images;
      const std::int64_t front = first - sees(i), back = sees(i) + kernel - end;
      if (frames_as_rows)
        c.height = end - first, c.stride_y = 1, c.pad_top = front, c.pad_bottom = back;
      else
        c.frames = end - first, c.stride_t = 1, c.pad_front = front, c.pad_back = back;
      run(c, first, i);
      i += c.images;
    }
  }
};

void check_video(const Tensor& x, const Tensor& w, const VideoConv& how) {
  const std::int64_t sizes[3] = {x.size(0), x.size(1), x.size(2)};
  const bool one_by_one = w.size(2) == 1 && how.stride[0] == 1;  // then there may be no frames
  for (std::size_t d = 0; d < 3; ++d) {
    if (d == 0 && one_by_one && how.before[0] == 0 && how.after[0] == 0) continue;
    const std::int64_t kernel = w.size(static_cast<int>(d) + 2), before = how.before[d],
                       after = how.after[d];
    if (how.stride[d] < 1 || kernel < 1 || sizes[d] < 1 || before < 0 || after < 0 ||
        sizes[d] + before + after < kernel || (d == 0 && (before >= kernel || after >= kernel)))
      fail(
          "a convolution {} does not fit a video {} with {} zeros before and {} after it, stride "
          "{}",
          to_string(w.shape()), to_string(x.shape()), before, after, how.stride[d]);
  }
}

// `add_last`: as in TimeConv.
Tensor convolve_video(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
                      const VideoConv& how, bool add_last) {
  Tensor read = x;
  if (const Tensor& history = how.history; history.defined() && history.size(0) > 0) {
    const std::int64_t earlier = history.size(0);
    const Shape shape{earlier + x.size(0), x.size(1), x.size(2), x.size(3)};
    if (history.elements() != earlier * x.size(1) * x.size(2) * x.size(3) ||
        history.dtype() != x.dtype() || history.device() != x.device())
      fail("a history {} {} does not fit a video {} {}", dtype_name(history.dtype()),
           to_string(history.shape()), dtype_name(x.dtype()), to_string(x.shape()));
    read = Tensor(shape, x.dtype(), x.device());
    copy(history, read.rows(0, earlier));
    copy(x, read.rows(earlier, shape[0]));
  }
  check_video(read, w, how);
  const WholeVideo whole(read, w, how);
  const Tensor y(whole.result(x), x.dtype(), x.device());
  check_residual(how.residual, y);
  const Tensor last = add_last ? x.rows(2, x.size(0)) : how.residual;
  whole.each_run(how, read.size(0), w.size(2), y.size(0),
                 [&](const Conv2d& c, std::int64_t from, std::int64_t to) {
                   const auto at = [](const Tensor& t, std::int64_t frame) {
                     return t.rows(frame, t.size(0)).raw();
                   };
                   conv2d(x.device(), c, x.dtype(), at(read, from), w.raw(), bias.data<float>(),
                          last.defined() ? at(last.reshape(y.shape()), to) : nullptr, at(y, to));
                 });
  tape.record(y, {x, w, bias, how.residual},
              [x, read, w, bias, y, add_last, conv = whole.conv, residual = how.residual](Tape& t) {
                const Tensor dy = t.take(y);
                backward(t, conv, dy, x, read, w, bias);
                if (residual.defined()) t.accumulate(residual, dy);
                if (!add_last || !t.wants_grad(x)) return;
                Tensor dx = Tensor::zeros(x.shape(), dy.dtype(), dy.device());
                copy(dy, dx.rows(2, x.size(0)));
                t.accumulate(x, dx);
              });
  return y;
}

Conv2d space_of(const Tensor& x, const Tensor& w, const SpaceConv& how) {
  Conv2d c;
  c.images = x.size(0), c.height = x.size(1), c.width = x.size(2), c.in = x.size(3);
  c.out = w.size(0);
  c.kernel_height = c.kernel_width = 3;
  c.stride_y = c.stride_x = how.stride;
  c.pad_top = how.stride == 1 && !how.halo_above ? 1 : 0;
  c.pad_left = how.stride == 1 ? 1 : 0;
  c.pad_bottom = how.halo_below ? 0 : 1;
  c.pad_right = 1;
  c.x_step = c.height * c.width * c.in;
  const std::int64_t own = c.height - (how.halo_below ? 1 : 0);
  if (how.stride != 1 && (how.stride != 2 || own % 2 || c.width % 2 || how.halo_above))
    fail("conv_space: no stride {} over {} rows and {} columns", how.stride, own, c.width);
  return c;
}

}  // namespace

void fill_lead(const Tensor& result, const Lead& lead) {
  if (lead.frames == 0) return;
  const Tensor at = result.rows(0, lead.frames);
  if (lead.history.defined()) {
    if (lead.history.shape() != at.shape())
      fail("a lead of {} is not {}", to_string(lead.history.shape()), to_string(at.shape()));
    return copy(lead.history, at);
  }
  for (std::int64_t i = 0; i < lead.frames; ++i)
    copy(result.rows(lead.frames, lead.frames + 1), at.rows(i, i + 1));
}

Tensor fold_lead(Tensor dy, const Lead& lead) {
  if (lead.frames == 0) return dy;
  if (!lead.history.defined()) {
    if (!dy.unique()) dy = dy.clone();
    for (std::int64_t i = 0; i < lead.frames; ++i)
      add_in_place(dy.rows(lead.frames, lead.frames + 1), dy.rows(i, i + 1));
  }
  return dy.rows(lead.frames, dy.size(0));
}

Tensor conv_space(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
                  const SpaceConv& how) {
  check("conv_space", x, w, bias, {1, 3, 3});
  const Conv2d c = space_of(x, w, how);
  const Tensor y({how.lead.frames + c.images, c.out_height(), c.out_width(), c.out}, x.dtype(),
                 x.device());
  const Tensor own = y.rows(how.lead.frames, y.size(0));
  check_residual(how.residual, own);
  conv2d(x.device(), c, x.dtype(), x.raw(), w.raw(), bias.data<float>(),
         how.residual.defined() ? how.residual.raw() : nullptr, own.raw());
  fill_lead(y, how.lead);
  tape.record(y, {x, w, bias, how.residual}, [=](Tape& t) {
    const Tensor dy = fold_lead(t.take(y), how.lead);
    backward(t, c, dy, x, x, w, bias);
    if (how.residual.defined()) t.accumulate(how.residual, dy);
  });
  return y;
}

Tensor conv_time(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
                 const TimeConv& how) {
  check("conv_time", x, w, bias, {3, 1, 1});
  const std::int64_t in = x.size(3), out = w.size(0);
  if (x.size(0) < 3 || how.stride < 1 || (x.size(0) - 3) % how.stride)
    fail("conv_time: no stride {} over {} frames and their lead", how.stride, x.size(0));
  if (how.add_last && (how.stride != 1 || in != out || how.residual.defined()))
    fail("conv_time: cannot add {} channels to {}", in, out);
  return convolve_video(tape, x, w, bias, {.stride = {how.stride, 1, 1}, .residual = how.residual},
                        how.add_last);
}

Tensor conv_point(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
                  const Tensor& residual) {
  check("conv_point", x, w, bias, {1, 1, 1});
  return convolve_video(tape, x, w, bias, {.residual = residual}, false);
}

VideoConv padded_around(const Tensor& w) {
  VideoConv how;
  for (std::size_t d = 0; d < 3; ++d)
    how.before[d] = how.after[d] = (w.size(static_cast<int>(d) + 2) - 1) / 2;
  return how;
}

VideoConv padded_before(const Tensor& w, const Tensor& history) {
  VideoConv how = padded_around(w);
  how.before[0] = w.size(2) - 1 - (history.defined() ? history.size(0) : 0);
  how.after[0] = 0;
  how.history = history;
  return how;
}

Tensor conv_video(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
                  const VideoConv& how) {
  if (w.dims() != 5) fail("conv_video: weights {} have no five dimensions", to_string(w.shape()));
  check("conv_video", x, w, bias, {w.size(2), w.size(3), w.size(4)});
  return convolve_video(tape, x, w, bias, how, false);
}

}  // namespace vfm::ops

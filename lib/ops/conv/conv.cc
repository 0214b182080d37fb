// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv.h"

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
                      Shape{w.size(2), w.size(3), w.size(4)} == kernel && bias.dims() == 1 &&
                      bias.size(0) == w.size(0);
  if (!shapes)
    fail("{}: x {}, w {} and bias {} do not fit each other", name, to_string(x.shape()),
         to_string(w.shape()), to_string(bias.shape()));
  if (x.dtype() != w.dtype() || bias.dtype() != DType::f32)
    fail("{}: no convolution of {} with {} and {}", name, dtype_name(x.dtype()),
         dtype_name(w.dtype()), dtype_name(bias.dtype()));
  if (x.device() != w.device() || x.device() != bias.device())
    fail("{}: x is on {}, w on {}", name, device_name(x.device()), device_name(w.device()));
}

void check_residual(const Tensor& residual, const Tensor& like) {
  if (!residual.defined()) return;
  if (residual.elements() != like.elements() || residual.dtype() != like.dtype() ||
      residual.device() != like.device())
    fail("cannot add {} {} to a convolution's {} {}", dtype_name(residual.dtype()),
         to_string(residual.shape()), dtype_name(like.dtype()), to_string(like.shape()));
}

// Everything that flows back through a convolution but for the residual.
void backward(Tape& tape, const Conv2d& conv, const Tensor& dy, const Tensor& x, const Tensor& w,
              const Tensor& bias) {
  const Tensor low = dy.to(x.dtype());
  const AddedGradient dw(tape, w), dbias(tape, bias);
  if (dw.data() != nullptr || dbias.data() != nullptr)
    conv2d_backward_weights(x.device(), conv, x.dtype(), x.raw(), low.raw(), dw.data(),
                            dbias.data());
  dw.finish();
  dbias.finish();
  if (!tape.wants_grad(x)) return;
  Tensor dx(x.shape(), x.dtype(), x.device());
  conv2d_backward_data(x.device(), conv, x.dtype(), low.raw(), w.raw(), dx.raw());
  tape.accumulate(x, dx);
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
    backward(t, c, dy, x, w, bias);
    if (how.residual.defined()) t.accumulate(how.residual, dy);
  });
  return y;
}

Tensor conv_time(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
                 const TimeConv& how) {
  check("conv_time", x, w, bias, {3, 1, 1});
  const std::int64_t pixels = x.size(1) * x.size(2), in = x.size(3), out = w.size(0);
  if (x.size(0) < 3 || how.stride < 1 || (x.size(0) - 3) % how.stride)
    fail("conv_time: no stride {} over {} frames and their lead", how.stride, x.size(0));
  if (how.add_last && (how.stride != 1 || in != out || how.residual.defined()))
    fail("conv_time: cannot add {} channels to {}", in, out);
  // Three frames are an image of three rows; each frame of the result is the only row of its own.
  Conv2d c;
  c.images = (x.size(0) - 3) / how.stride + 1, c.height = 3, c.width = pixels, c.in = in,
  c.out = out, c.kernel_height = 3;
  c.x_step = how.stride * pixels * in;
  const Tensor y({c.images, x.size(1), x.size(2), out}, x.dtype(), x.device());
  check_residual(how.residual, y);
  const Tensor last = how.add_last ? x.rows(2, x.size(0)) : how.residual;
  conv2d(x.device(), c, x.dtype(), x.raw(), w.raw(), bias.data<float>(),
         last.defined() ? last.raw() : nullptr, y.raw());
  Conv2d whole = c;
  whole.images = 1, whole.height = x.size(0), whole.stride_y = how.stride;
  tape.record(y, {x, w, bias, how.residual}, [=](Tape& t) {
    const Tensor dy = t.take(y);
    backward(t, whole, dy, x, w, bias);
    if (how.residual.defined()) t.accumulate(how.residual, dy);
    if (!how.add_last || !t.wants_grad(x)) return;
    Tensor dx = Tensor::zeros(x.shape(), dy.dtype(), dy.device());
    copy(dy, dx.rows(2, x.size(0)));
    t.accumulate(x, dx);
  });
  return y;
}

Tensor conv_point(Tape& tape, const Tensor& x, const Tensor& w, const Tensor& bias,
                  const Tensor& residual) {
  check("conv_point", x, w, bias, {1, 1, 1});
  Conv2d c;
  c.images = x.size(0), c.height = x.size(1), c.width = x.size(2), c.in = x.size(3);
  c.out = w.size(0);
  c.x_step = c.height * c.width * c.in;
  const Tensor y({c.images, c.height, c.width, c.out}, x.dtype(), x.device());
  check_residual(residual, y);
  conv2d(x.device(), c, x.dtype(), x.raw(), w.raw(), bias.data<float>(),
         residual.defined() ? residual.raw() : nullptr, y.raw());
  tape.record(y, {x, w, bias, residual}, [=](Tape& t) {
    const Tensor dy = t.take(y);
    backward(t, c, dy, x, w, bias);
    if (residual.defined()) t.accumulate(residual, dy);
  });
  return y;
}

}  // namespace vfm::ops

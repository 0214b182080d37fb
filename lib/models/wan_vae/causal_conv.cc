// SPDX-License-Identifier: Apache-2.0
#include "models/wan_vae/causal_conv.h"

#include <algorithm>
#include <utility>

#include "ops/conv/conv.h"
#include "ops/norm/pixel_norm.h"

namespace vfm::models::wan_vae {
namespace {

const Tensor& value_of(const nn::Weight* weight) {
  ops::Tape silent(false);
  return weight->op(silent);
}

}  // namespace

std::vector<Tensor> LayerState::past() const {
  std::vector<Tensor> there;
  for (const Tensor& frame : frames)
    if (frame.defined()) there.push_back(frame);
  return there;
}

void LayerState::remember(const Tensor& frame) {
  frames[0] = std::move(frames[1]);
  frames[1] = frame;
}

Tensor Pass::extended(const Tensor& x, std::int64_t rows) const {
  if (!above() && !below()) return x;
  const Tensor wide =
      ranks->with_neighbours(x.reshape({1, x.size(0), x.size(1), x.size(2)}), true, rows);
  return wide.reshape({wide.size(1), wide.size(2), wide.size(3)});
}

std::int64_t Pass::rows_of(std::int64_t height, std::int64_t width) const {
  return std::clamp<std::int64_t>(band_pixels / width, 1, height);
}

const nn::Weight* Maker::kernel(const std::string& name, const Shape& shape) const {
  nn::WeightOptions own = options;
  own.init = nn::Init::fan_in;
  return &weights.emplace_back(std::vector{name}, shape, own);
}

const nn::Weight* Maker::vector(const std::string& name, const Shape& shape, nn::Init init) const {
  nn::WeightOptions own = options;
  own.init = init;
  own.compute = DType::f32;
  own.decay = false;
  return &weights.emplace_back(std::vector{name}, shape, own);
}

void arrange_kernels(const std::deque<nn::Weight>& weights) {
  for (const nn::Weight& weight : weights)
    if (const Tensor& value = value_of(&weight);
        value.dims() >= 4 && value.elements() > value.size(0) * value.size(1))
      ops::arrange_weights(value);
}

Kernel::Kernel(const Maker& make, const std::string& name, const Shape& shape)
    : w(make.kernel(name + ".weight", shape)),
      bias(make.vector(name + ".bias", {shape.front()}, nn::Init::zero)) {}

void Kernel::convolve(ops::Conv2d conv, const Tensor& x, const Tensor& residual, const Tensor& y,
                      std::int64_t first) const {
  conv.weights_last = true;
  const auto from = [&](const nn::Weight* weight) {
    return value_of(weight).rows(first, first + conv.out);
  };
  ops::conv2d(x.device(), conv, x.dtype(), x.raw(), from(w).raw(), from(bias).data<float>(),
              residual.defined() ? residual.raw() : nullptr, y.raw());
}

Tensor Kernel::at_points(const Tensor& x, std::int64_t first, std::int64_t end,
                         const Tensor& residual) const {
  ops::Tape silent(false);
  const std::int64_t height = x.size(0), width = x.size(1), in = x.size(2), out = end - first;
  return ops::conv_point(silent, x.reshape({1, height, width, in}),
                         value_of(w).rows(first, end).reshape({out, in, 1, 1, 1}),
                         value_of(bias).rows(first, end),
                         residual.defined() ? residual.reshape({1, height, width, out}) : Tensor())
      .reshape({height, width, out});
}

Norm::Norm(const Maker& make, const std::string& name, int channels, bool of_video)
    : w(make.vector(name + ".gamma", of_video ? Shape{channels, 1, 1, 1} : Shape{channels, 1, 1},
                    nn::Init::one)) {}

void Norm::forward(const Tensor& x, const Tensor& y, bool silu) const {
  ops::pixel_norm(x, value_of(w), silu, y);
}

CausalConv::CausalConv(const Maker& make, const std::string& name, int in, int out)
    : kernel_(make, name, {out, in, 3, 3, 3}), in_(in), out_(out), layer_(make.layer()) {}

CausalConv::Frame::Frame(const CausalConv& conv, const Pass& pass, std::int64_t height,
                         std::int64_t width)
    : conv_(conv),
      state_(pass.of(conv.layer_)),
      keeps_(!pass.last),
      height_(height),
      width_(width),
      end_(height - (pass.below() ? 1 : 0)),
      past_(state_.past()) {
  // The oldest frame gives its place, row by row, as soon as nothing looks at the row any more.
  if (past_.size() == 2) kept_ = past_.front();
}

void CausalConv::Frame::rows(std::int64_t begin, std::int64_t end, const Fill& fill,
                             const Tensor& residual, const Tensor& y) {
  const std::int64_t first = std::max<std::int64_t>(begin - 1, 0);
  const std::int64_t last = std::min(end + 1, height_);
  const auto frames = static_cast<std::int64_t>(past_.size()) + 1;
  const std::int64_t count = last - first;
  const Tensor window({frames * count, width_, conv_.in_}, y.dtype(), y.device());
  for (std::int64_t t = 0; t + 1 < frames; ++t)
    copy(past_[static_cast<std::size_t>(t)].rows(first, last),
         window.rows(t * count, (t + 1) * count));
  const Tensor own = window.rows((frames - 1) * count, frames * count);
  if (first < filled_) {
    const std::int64_t old = (frames - 1) * (window_.size(0) / frames) - first_;
    copy(window_.rows(old + first, old + filled_), own.rows(0, filled_ - first));
  }
  window_ = Tensor();
  const std::int64_t from = std::max(first, filled_);
  if (from < last) fill(from, last, own.rows(from - first, count));
  window_ = window, first_ = first, filled_ = last;

  ops::Conv2d c;
  c.frames = frames, c.height = count, c.width = width_, c.in = conv_.in_, c.out = conv_.out_;
  c.kernel_frames = c.kernel_height = c.kernel_width = 3;
  c.pad_front = 3 - frames;
  c.pad_top = begin == 0 ? 1 : 0, c.pad_bottom = end == height_ ? 1 : 0;
  c.pad_left = c.pad_right = 1;
  c.x_step = frames * count * width_ * conv_.in_;
  conv_.kernel_.convolve(c, window, residual, y);
  if (keeps_) keep(end == end_ ? height_ : end - 1);
  if (end == end_) finish();
}

void CausalConv::Frame::keep(std::int64_t end) {
  if (!kept_.defined())
    kept_ = Tensor({height_, width_, conv_.in_}, window_.dtype(), window_.device());
  const std::int64_t own = window_.size(0) - filled_;
  copy(window_.rows(own + stored_, own + end), kept_.rows(stored_, end));
  stored_ = end;
}

void CausalConv::Frame::finish() {
  window_ = Tensor();
  past_.clear();
  if (keeps_)
    state_.remember(kept_);
  else
    state_.frames = {};
}

Tensor CausalConv::over_bands(const Pass& pass, const Tensor& x, const Frame::Fill& fill) const {
  const std::int64_t above = pass.above() ? 1 : 0, below = pass.below() ? 1 : 0;
  const std::int64_t height = x.size(0) - above - below, width = x.size(1);
  const Tensor y({height, width, out_}, x.dtype(), x.device());
  Frame frame(*this, pass, x.size(0), width);
  pass.each_band(height, width, [&](std::int64_t begin, std::int64_t end) {
    frame.rows(begin + above, end + above, fill, {}, y.rows(begin, end));
  });
  return y;
}

Tensor CausalConv::forward(const Pass& pass, const Tensor& x) const {
  const Tensor wide = pass.extended(x, 1);
  return over_bands(pass, wide, [&](std::int64_t begin, std::int64_t end, const Tensor& to) {
    copy(wide.rows(begin, end), to);
  });
}

Tensor CausalConv::forward(const Pass& pass, const Tensor& x, const Norm& norm) const {
  const Tensor wide = pass.extended(x, 1);
  return over_bands(pass, wide, [&](std::int64_t begin, std::int64_t end, const Tensor& to) {
    norm.forward(wide.rows(begin, end), to);
  });
}

}  // namespace vfm::models::wan_vae

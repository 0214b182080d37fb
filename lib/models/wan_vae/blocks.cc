// SPDX-License-Identifier: Apache-2.0
#include "models/wan_vae/blocks.h"

#include <algorithm>
#include <utility>

#include "ops/attention/frame_attention.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv2d.h"
#include "ops/conv/resample.h"
#include "ops/norm/pixel_norm.h"
#include "ops/pointwise/add.h"

namespace vfm::models::wan_vae {
namespace {

using ops::Conv2d;

const Tensor& value_of(const nn::Weight* weight) {
  ops::Tape silent(false);
  return weight->op(silent);
}

void run(Conv2d conv, const Tensor& x, const Kernel& kernel, const Tensor& residual,
         const Tensor& y) {
  conv.weights_last = true;
  ops::conv2d(x.device(), conv, x.dtype(), x.raw(), value_of(kernel.w).raw(),
              value_of(kernel.bias).data<float>(), residual.defined() ? residual.raw() : nullptr,
              y.raw());
}

/// Rows [first, end) of a convolution at points, as one of their own.
Tensor at_points(const Tensor& x, const Kernel& kernel, std::int64_t first, std::int64_t end,
                 const Tensor& residual = {}) {
  ops::Tape silent(false);
  const Tensor w = value_of(kernel.w).rows(first, end);
  const Tensor video = x.reshape({1, x.size(0), x.size(1), x.size(2)});
  const Tensor y = ops::conv_point(
      silent, video, w.reshape({end - first, x.size(2), 1, 1, 1}),
      value_of(kernel.bias).rows(first, end),
      residual.defined() ? residual.reshape({1, x.size(0), x.size(1), end - first}) : Tensor());
  return y.reshape({x.size(0), x.size(1), end - first});
}

/// Three frames of `channels` as the rows of a picture whose columns are their pixels.
Conv2d over_time(const Tensor& frame, std::int64_t frames, std::int64_t out) {
  Conv2d c;
  c.height = frames, c.width = frame.size(0) * frame.size(1);
  c.in = frame.size(2), c.out = out;
  c.kernel_height = 3;
  c.pad_top = 3 - frames;
  c.x_step = frames * frame.elements();
  c.weights_last = true;
  return c;
}

/// The frames that are there, one after the other.
Tensor stacked(const std::vector<Tensor>& frames) {
  const Tensor& last = frames.back();
  const auto count = static_cast<std::int64_t>(frames.size());
  Tensor all({count, last.size(0), last.size(1), last.size(2)}, last.dtype(), last.device());
  for (std::int64_t i = 0; i < count; ++i)
    copy(frames[static_cast<std::size_t>(i)], all.rows(i, i + 1));
  return all;
}

std::vector<Tensor> frames_of(const LayerState& state) {
  std::vector<Tensor> frames;
  for (const Tensor& frame : state.frames)
    if (frame.defined()) frames.push_back(frame);
  return frames;
}

void remember(LayerState& state, const Tensor& frame) {
  state.frames[0] = std::move(state.frames[1]);
  state.frames[1] = frame;
}

/// Calls work(begin, end) for bands of `height` rows, from top to bottom.
template <class Work>
void each_band(std::int64_t rows, std::int64_t height, const Work& work) {
  for (std::int64_t begin = 0; begin < height; begin += rows)
    work(begin, std::min(begin + rows, height));
}

}  // namespace

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
      past_(frames_of(state_)) {
  // The oldest frame gives its place, row by row, as soon as nothing looks at the row any more.
  if (past_.size() == 2) kept_ = past_.front();
}

Tensor CausalConv::Frame::rows(std::int64_t begin, std::int64_t end, const Fill& fill,
                               const Tensor& residual, Tensor y) {
  const std::int64_t first = std::max<std::int64_t>(begin - 1, 0);
  const std::int64_t last = std::min(end + 1, height_);
  const auto frames = static_cast<std::int64_t>(past_.size()) + 1;
  const std::int64_t count = last - first, pixels = width_ * conv_.in_;
  const DType dtype = value_of(conv_.kernel_.w).dtype();
  const Device device = value_of(conv_.kernel_.w).device();
  const Tensor window({frames * count, width_, conv_.in_}, dtype, device);
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

  Conv2d c;
  c.frames = frames, c.height = count, c.width = width_, c.in = conv_.in_, c.out = conv_.out_;
  c.kernel_frames = c.kernel_height = c.kernel_width = 3;
  c.pad_front = 3 - frames;
  c.pad_top = begin == 0 ? 1 : 0, c.pad_bottom = end == height_ ? 1 : 0;
  c.pad_left = c.pad_right = 1;
  c.x_step = frames * count * pixels;
  if (!y.defined()) y = Tensor({end - begin, width_, conv_.out_}, dtype, device);
  run(c, window, conv_.kernel_, residual, y);
  if (keeps_) keep(end == height_ ? end : end - 1);
  if (end == height_) finish();
  return y;
}

void CausalConv::Frame::keep(std::int64_t end) {
  if (!kept_.defined())
    kept_ = Tensor({height_, width_, conv_.in_}, window_.dtype(), window_.device());
  const std::int64_t own = window_.size(0) - (filled_ - first_) - first_;
  copy(window_.rows(own + stored_, own + end), kept_.rows(stored_, end));
  stored_ = end;
}

void CausalConv::Frame::finish() {
  window_ = Tensor();
  past_.clear();
  if (keeps_)
    remember(state_, kept_);
  else
    state_.frames = {};
}

Tensor CausalConv::over_bands(const Pass& pass, const Tensor& x, const Frame::Fill& fill) const {
  const Tensor y({x.size(0), x.size(1), out_}, x.dtype(), x.device());
  Frame frame(*this, pass, x.size(0), x.size(1));
  each_band(pass.rows_of(x.size(0), x.size(1)), x.size(0),
            [&](std::int64_t begin, std::int64_t end) {
              frame.rows(begin, end, fill, {}, y.rows(begin, end));
            });
  return y;
}

Tensor CausalConv::forward(const Pass& pass, const Tensor& x) const {
  return over_bands(pass, x, [&](std::int64_t begin, std::int64_t end, const Tensor& to) {
    copy(x.rows(begin, end), to);
  });
}

Tensor CausalConv::forward(const Pass& pass, const Tensor& x, const Norm& norm) const {
  return over_bands(pass, x, [&](std::int64_t begin, std::int64_t end, const Tensor& to) {
    norm.forward(x.rows(begin, end), to);
  });
}

Resnet::Resnet(const Maker& make, const std::string& name, int in, int out_channels)
    : norm1(make, name + ".norm1", in),
      conv1(make, name + ".conv1", in, out_channels),
      norm2(make, name + ".norm2", out_channels),
      conv2(make, name + ".conv2", out_channels, out_channels),
      out(out_channels) {
  if (in != out) shortcut.emplace(make, name + ".conv_shortcut", Shape{out, in, 1, 1, 1});
}

// With the channels that it has, the result may take the place of x: when a row is written, all
// that reads it has been computed.
Tensor Resnet::forward(const Pass& pass, Tensor x) const {
  const std::int64_t height = x.size(0), width = x.size(1);
  const bool in_place = !shortcut && x.unique();
  const Tensor y = in_place ? x : Tensor({height, width, out}, x.dtype(), x.device());
  CausalConv::Frame first(conv1, pass, height, width);
  CausalConv::Frame second(conv2, pass, height, width);
  const auto normed = [&](std::int64_t begin, std::int64_t end, const Tensor& to) {
    norm1.forward(x.rows(begin, end), to);
  };
  const auto between = [&](std::int64_t begin, std::int64_t end, const Tensor& to) {
    first.rows(begin, end, normed, {}, to);
    norm2.forward(to, to);
  };
  each_band(pass.rows_of(height, width), height, [&](std::int64_t begin, std::int64_t end) {
    const Tensor own = x.rows(begin, end);
    second.rows(begin, end, between, shortcut ? at_points(own, *shortcut, 0, out) : own,
                y.rows(begin, end));
  });
  return y;
}

Attention::Attention(const Maker& make, const std::string& name, int channels)
    : norm(make, name + ".norm", channels, false),
      qkv(make, name + ".to_qkv", {3 * channels, channels, 1, 1}),
      proj(make, name + ".proj", {channels, channels, 1, 1}) {}

Tensor Attention::forward(const Tensor& x) const {
  const std::int64_t channels = x.size(2);
  const Tensor normed(x.shape(), x.dtype(), x.device());
  norm.forward(x, normed, false);
  const auto part = [&](std::int64_t i) {
    const Tensor made = at_points(normed, qkv, i * channels, (i + 1) * channels);
    return made.reshape({1, x.size(0), x.size(1), channels});
  };
  ops::Tape silent(false);
  const Tensor seen = ops::frame_attention(silent, part(0), part(1), part(2));
  return at_points(seen.reshape(x.shape()), proj, 0, channels, x);
}

Middle::Middle(const Maker& make, const std::string& name, int channels)
    : before(make, name + ".resnets.0", channels, channels),
      attention(make, name + ".attentions.0", channels),
      after(make, name + ".resnets.1", channels, channels) {}

Tensor Middle::forward(const Pass& pass, Tensor x) const {
  x = before.forward(pass, std::move(x));
  return after.forward(pass, attention.forward(x));
}

Downsample::Downsample(const Maker& make, const std::string& name, int channels, bool with_time)
    : space(make, name + ".resample.1", {channels, channels, 3, 3}) {
  if (!with_time) return;
  time.emplace(make, name + ".time_conv", Shape{channels, channels, 3, 1, 1});
  layer = make.layer();
}

// The first frame of a video stays alone. Of the others every second closes a pair, which is
// convolved with the frame before it.
Tensor Downsample::forward(const Pass& pass, const Tensor& x, const Tensor& shortcut) const {
  Conv2d c;
  c.height = x.size(0), c.width = x.size(1), c.in = c.out = x.size(2);
  c.kernel_height = c.kernel_width = 3, c.stride_y = c.stride_x = 2;
  c.pad_bottom = c.pad_right = 1;
  c.x_step = x.elements();
  Tensor y({c.out_height(), c.out_width(), c.out}, x.dtype(), x.device());
  run(c, x, space, time ? Tensor() : shortcut, y);
  if (!time) return y;

  LayerState& state = pass.of(layer);
  const std::int64_t number = state.seen++;
  if (number % 2 == 1) {
    remember(state, y);
    return {};
  }
  if (number == 0) {
    remember(state, y);
    if (!shortcut.defined()) return y;
    const Tensor sum = shortcut.clone();
    ops::add_in_place(sum, y);
    return sum;
  }
  std::vector<Tensor> frames = frames_of(state);
  frames.push_back(y);
  const Tensor made(y.shape(), y.dtype(), y.device());
  run(over_time(y, 3, y.size(2)), stacked(frames), *time, shortcut, made);
  state.frames = {Tensor(), y};
  return made;
}

Upsample::Upsample(const Maker& make, const std::string& name, int in, int out_channels,
                   bool with_time)
    : space(make, name + ".resample.1", {out_channels, in, 3, 3}), out(out_channels) {
  if (!with_time) return;
  time.emplace(make, name + ".time_conv", Shape{2 * in, in, 3, 1, 1});
  layer = make.layer();
}

// The reference never shows the first frame of a video to this convolution.
std::vector<Tensor> Upsample::in_time(const Pass& pass, Tensor x) const {
  if (!time) return {std::move(x)};
  LayerState& state = pass.of(layer);
  if (state.seen++ == 0) return {std::move(x)};
  std::vector<Tensor> frames = frames_of(state);
  frames.push_back(x);
  const Tensor all = stacked(frames);
  const std::int64_t channels = x.size(2);
  const Tensor w = value_of(time->w), bias = value_of(time->bias);
  std::vector<Tensor> made;
  for (std::int64_t i = 0; i < 2; ++i) {
    const Tensor& frame = made.emplace_back(x.shape(), x.dtype(), x.device());
    ops::conv2d(x.device(), over_time(x, all.size(0), channels), x.dtype(), all.raw(),
                w.rows(i * channels, (i + 1) * channels).raw(),
                bias.rows(i * channels, (i + 1) * channels).data<float>(), nullptr, frame.raw());
  }
  if (pass.last)
    state.frames = {};
  else
    remember(state, x);
  return made;
}

Tensor Upsample::in_space(const Pass& pass, const Tensor& x, const Tensor& coarse,
                          const ops::PatchShape& patch, int frame) const {
  const std::int64_t height = x.size(0), width = x.size(1), channels = x.size(2);
  const Tensor y({2 * height, 2 * width, out}, x.dtype(), x.device());
  ops::Tape silent(false);
  each_band(pass.rows_of(height, 4 * width), height, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t above = begin > 0 ? 1 : 0, below = end < height ? 1 : 0;
    const Tensor rows = x.rows(begin - above, end + below);
    const Tensor wide = ops::repeat_space(silent, rows.reshape({1, rows.size(0), width, channels}))
                            .reshape({2 * rows.size(0), 2 * width, channels});
    Tensor residual;
    if (coarse.defined()) {
      residual = Tensor({2 * (end - begin), 2 * width, out}, x.dtype(), x.device());
      ops::repeat_patches(coarse.rows(begin, end), residual, patch, frame);
    }
    Conv2d c;
    c.height = 2 * (end - begin) + above + below, c.width = 2 * width;
    c.in = channels, c.out = out;
    c.kernel_height = c.kernel_width = 3;
    c.pad_top = 1 - above, c.pad_bottom = 1 - below, c.pad_left = c.pad_right = 1;
    c.x_step = c.height * c.width * channels;
    run(c, wide.rows(above, above + c.height), space, residual, y.rows(2 * begin, 2 * end));
  });
  return y;
}

}  // namespace vfm::models::wan_vae

// SPDX-License-Identifier: Apache-2.0
#include "models/wan_vae/blocks.h"

#include <utility>

#include "ops/attention/video_attention.h"
#include "ops/conv/resample.h"
#include "ops/pointwise/add.h"

namespace vfm::models::wan_vae {
namespace {

using ops::Conv2d;

/// Three frames of `channels` as the rows of a picture whose columns are their pixels.
Conv2d over_time(const Tensor& frame, std::int64_t frames, std::int64_t out) {
  Conv2d c;
  c.height = frames, c.width = frame.size(0) * frame.size(1);
  c.in = frame.size(2), c.out = out;
  c.kernel_height = 3;
  c.pad_top = 3 - frames;
  c.x_step = frames * frame.elements();
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

}  // namespace

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
  // Two rows of other ranks, one of which the first convolution makes its result of.
  const std::int64_t above = pass.above() ? 1 : 0, below = pass.below() ? 1 : 0;
  const Tensor wide = pass.extended(x, 2);
  CausalConv::Frame first(conv1, pass, wide.size(0), width);
  CausalConv::Frame second(conv2, pass, height + above + below, width);
  const auto normed = [&](std::int64_t begin, std::int64_t end, const Tensor& to) {
    norm1.forward(wide.rows(begin, end), to);
  };
  const auto between = [&](std::int64_t begin, std::int64_t end, const Tensor& to) {
    first.rows(begin + above, end + above, normed, {}, to);
    norm2.forward(to, to);
  };
  pass.each_band(height, width, [&](std::int64_t begin, std::int64_t end) {
    const Tensor own = x.rows(begin, end);
    second.rows(begin + above, end + above, between,
                shortcut ? shortcut->at_points(own, 0, out) : own, y.rows(begin, end));
  });
  return y;
}

Attention::Attention(const Maker& make, const std::string& name, int channels)
    : norm(make, name + ".norm", channels, false),
      qkv(make, name + ".to_qkv", {3 * channels, channels, 1, 1}),
      proj(make, name + ".proj", {channels, channels, 1, 1}) {}

Tensor Attention::forward(const Pass& pass, const Tensor& x) const {
  const std::int64_t channels = x.size(2);
  const Tensor normed(x.shape(), x.dtype(), x.device());
  norm.forward(x, normed, false);
  const auto part = [&](std::int64_t i) {
    const Tensor made = qkv.at_points(normed, i * channels, (i + 1) * channels);
    return made.reshape({1, x.size(0), x.size(1), channels});
  };
  const Tensor queries = part(0);
  Tensor keys = part(1), values = part(2);
  ops::FramePart own;
  if (pass.above() || pass.below()) {
    own = {pass.ranks->first_pixel(keys), pass.ranks->frame_pixels(keys)};
    keys = pass.ranks->gather_rows(keys);
    values = pass.ranks->gather_rows(values);
  }
  ops::Tape silent(false);
  const Tensor seen = ops::frame_attention(silent, queries, keys, values, own);
  return proj.at_points(seen.reshape(x.shape()), 0, channels, x);
}

Middle::Middle(const Maker& make, const std::string& name, int channels)
    : before(make, name + ".resnets.0", channels, channels),
      attention(make, name + ".attentions.0", channels),
      after(make, name + ".resnets.1", channels, channels) {}

Tensor Middle::forward(const Pass& pass, Tensor x) const {
  x = before.forward(pass, std::move(x));
  return after.forward(pass, attention.forward(pass, x));
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
  space.convolve(c, x, time ? Tensor() : shortcut, y);
  if (!time) return y;

  LayerState& state = pass.of(layer);
  const std::int64_t number = state.seen++;
  if (number % 2 == 1) {
    state.remember(y);
    return {};
  }
  if (number == 0) {
    state.remember(y);
    if (!shortcut.defined()) return y;
    const Tensor sum = shortcut.clone();
    ops::add_in_place(sum, y);
    return sum;
  }
  std::vector<Tensor> frames = state.past();
  frames.push_back(y);
  const Tensor made(y.shape(), y.dtype(), y.device());
  time->convolve(over_time(y, 3, y.size(2)), stacked(frames), shortcut, made);
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
  std::vector<Tensor> frames = state.past();
  frames.push_back(x);
  const Tensor all = stacked(frames);
  const std::int64_t channels = x.size(2);
  std::vector<Tensor> made;
  for (std::int64_t i = 0; i < 2; ++i) {
    const Tensor& frame = made.emplace_back(x.shape(), x.dtype(), x.device());
    time->convolve(over_time(x, all.size(0), channels), all, {}, frame, i * channels);
  }
  if (pass.last)
    state.frames = {};
  else
    state.remember(x);
  return made;
}

Tensor Upsample::in_space(const Pass& pass, const Tensor& x, const Tensor& coarse,
                          const ops::PatchShape& patch, int frame) const {
  const std::int64_t height = x.size(0), width = x.size(1), channels = x.size(2);
  const Tensor y({2 * height, 2 * width, out}, x.dtype(), x.device());
  const std::int64_t more = pass.above() ? 1 : 0;  // rows of the rank above
  const Tensor wide = pass.extended(x, 1);
  ops::Tape silent(false);
  pass.each_band(height, 4 * width, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t above = begin + more > 0 ? 1 : 0;
    const std::int64_t below = end + more < wide.size(0) ? 1 : 0;
    const Tensor rows = wide.rows(begin + more - above, end + more + below);
    const Tensor large = ops::repeat_space(silent, rows.reshape({1, rows.size(0), width, channels}))
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
    space.convolve(c, large.rows(above, above + c.height), residual, y.rows(2 * begin, 2 * end));
  });
  return y;
}

}  // namespace vfm::models::wan_vae

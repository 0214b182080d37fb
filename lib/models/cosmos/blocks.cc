// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/blocks.h"

#include "ops/attention/video_attention.h"
#include "ops/conv/resample.h"
#include "ops/norm/frame_norm.h"

namespace vfm::models::cosmos {
namespace {

using ops::Lead;
using ops::Tape;

constexpr float kNormEpsilon = 1e-6f;

// What stands before the frames that a layer makes for a convolution in time: two frames at the
// start, later as many as it kept. What another rank has comes afterwards.
Lead lead_of(const LayerState* state, bool start) {
  if (start || state == nullptr || !state->history.defined()) return {2, {}};
  return {state->history.size(0), state->history};
}

// Keeps the last `frames` of what the convolution saw, for the next chunk. A copy: a view would
// hold all of it. Or gives them to the rank that has this chunk, and gets those in front of `seen`.
void keep_history(const Pass& pass, LayerState* state, const Tensor& seen, std::int64_t frames) {
  if (state == nullptr) return;
  if (pass.time != nullptr) return pass.time->pass_on(seen, frames, state->history);
  state->history = pass.last ? Tensor() : seen.rows(seen.size(0) - frames, seen.size(0)).clone();
}

Tensor convolve_in_space(Pass& pass, const Kernel& kernel, Tensor x, ops::SpaceConv how) {
  if (pass.exchange != nullptr && pass.exchange->parts() > 1) {
    const bool above = how.stride == 1;
    x = pass.exchange->with_neighbours(x, above);
    how.halo_above = above && !pass.exchange->first();
    how.halo_below = !pass.exchange->last();
  }
  return ops::conv_space(pass.tape, x, kernel.w->op(pass.tape), kernel.bias->op(pass.tape), how);
}

Tensor convolve_in_time(Pass& pass, const Kernel& kernel, const Tensor& x,
                        const ops::TimeConv& how) {
  return ops::conv_time(pass.tape, x, kernel.w->op(pass.tape), kernel.bias->op(pass.tape), how);
}

Tensor convolve_at_points(Pass& pass, const Kernel& kernel, const Tensor& x,
                          const Tensor& residual = {}) {
  return ops::conv_point(pass.tape, x, kernel.w->op(pass.tape), kernel.bias->op(pass.tape),
                         residual);
}

/// What `body` makes of x, of which backward keeps all or x alone.
template <class Body>
Tensor as_block(Pass& pass, const Tensor& x, const Body& body) {
  if (!pass.recompute || !pass.tape.recording()) return body(pass, x);
  return pass.tape.checkpoint(x, {}, [body](Tape& tape, const Tensor& in) {
    Pass again{tape};
    return std::vector{body(again, in)};
  })[0];
}

}  // namespace

LayerState* Pass::next_state() {
  if (stream == nullptr) return nullptr;
  if (layer == stream->layers.size()) stream->layers.emplace_back();
  return &stream->layers[layer++];
}

const nn::Weight* Maker::kernel(const std::string& name, const Shape& shape) const {
  nn::WeightOptions own = options;
  own.init = nn::Init::fan_in;
  return &weights.emplace_back(std::vector{name}, shape, own);
}

const nn::Weight* Maker::vector(const std::string& name, std::int64_t size, nn::Init init) const {
  nn::WeightOptions own = options;
  own.init = init;
  own.compute = DType::f32;
  own.decay = false;
  return &weights.emplace_back(std::vector{name}, Shape{size}, own);
}

Kernel::Kernel(const Maker& make, const std::string& name, int in, int out, int t, int side)
    : w(make.kernel(name + ".weight", {out, in, t, side, side})),
      bias(make.vector(name + ".bias", out, nn::Init::zero)) {}

Projection::Projection(const Maker& make, const std::string& name, int in, int out)
    : space(make, name + ".conv_s", in, out, 1, 3), time(make, name + ".conv_t", out, out, 3, 1) {}

Tensor Projection::forward(Pass& pass, Tensor x, const Tensor& residual) const {
  LayerState* const state = pass.next_state();
  x = convolve_in_space(pass, space, std::move(x), {.lead = lead_of(state, pass.start)});
  keep_history(pass, state, x, 2);
  return convolve_in_time(pass, time, x, {.residual = residual});
}

Norm::Norm(const Maker& make, const std::string& name, int channels)
    : w(make.vector(name + ".weight", channels, nn::Init::one)),
      bias(make.vector(name + ".bias", channels, nn::Init::zero)) {}

Tensor Norm::forward(Pass& pass, const Tensor& x, bool silu) const {
  Tensor moments;
  if (pass.exchange != nullptr && pass.exchange->parts() > 1)
    moments = pass.exchange->whole_moments(x);
  return ops::frame_norm(pass.tape, x, w->op(pass.tape), bias->op(pass.tape), kNormEpsilon, silu,
                         moments);
}

Resnet::Resnet(const Maker& make, const std::string& name, int in, int out)
    : norm1(make, name + ".norm1.norm", in),
      conv1(make, name + ".conv1", in, out),
      norm2(make, name + ".norm2.norm", out),
      conv2(make, name + ".conv2", out, out) {
  if (in != out) shortcut.emplace(make, name + ".conv_shortcut", in, out, 1, 1);
}

Tensor Resnet::forward(Pass& pass, const Tensor& x) const {
  return as_block(pass, x, [this](Pass& p, const Tensor& in) { return run(p, in); });
}

Tensor Resnet::run(Pass& pass, const Tensor& x) const {
  Tensor h = conv1.forward(pass, norm1.forward(pass, x, true));
  h = norm2.forward(pass, h, true);
  return conv2.forward(pass, std::move(h), shortcut ? convolve_at_points(pass, *shortcut, x) : x);
}

Attention::Attention(const Maker& make, const std::string& name, int channels)
    : norm(make, name + ".norm.norm", channels),
      q(make, name + ".to_q", channels, channels, 1, 1),
      k(make, name + ".to_k", channels, channels, 1, 1),
      v(make, name + ".to_v", channels, channels, 1, 1),
      out(make, name + ".to_out.0", channels, channels, 1, 1) {}

Tensor Attention::forward_in_frame(Pass& pass, const Tensor& x) const {
  return as_block(pass, x, [this](Pass& p, const Tensor& in) { return run_in_frame(p, in); });
}

Tensor Attention::forward_along_time(Pass& pass, const Tensor& x) const {
  return as_block(pass, x, [this](Pass& p, const Tensor& in) { return run_along_time(p, in); });
}

Tensor Attention::run_in_frame(Pass& pass, const Tensor& x) const {
  const Tensor normed = norm.forward(pass, x, false);
  const Tensor queries = convolve_at_points(pass, q, normed);
  Tensor keys = convolve_at_points(pass, k, normed), values = convolve_at_points(pass, v, normed);
  ops::FramePart part;
  if (pass.exchange != nullptr && pass.exchange->parts() > 1) {
    part = {pass.exchange->first_pixel(x), pass.exchange->frame_pixels(x)};
    keys = pass.exchange->gather_rows(keys);
    values = pass.exchange->gather_rows(values);
  }
  return convolve_at_points(pass, out, ops::frame_attention(pass.tape, queries, keys, values, part),
                            x);
}

Tensor Attention::run_along_time(Pass& pass, const Tensor& x) const {
  const Tensor normed = norm.forward(pass, x, false);
  const Tensor queries = convolve_at_points(pass, q, normed);
  ops::TimeKeys own;
  LayerState* const state = pass.next_state();
  if (pass.time != nullptr) {
    own = pass.time->with_past(state->past, convolve_at_points(pass, k, normed),
                               convolve_at_points(pass, v, normed));
    return convolve_at_points(pass, out, ops::time_attention(pass.tape, queries, own), x);
  }
  if (state != nullptr && pass.last) own = std::move(state->past);
  ops::TimeKeys& pieces = state != nullptr && !pass.last ? state->past : own;
  pieces.keys.push_back(convolve_at_points(pass, k, normed));
  pieces.values.push_back(convolve_at_points(pass, v, normed));
  return convolve_at_points(pass, out, ops::time_attention(pass.tape, queries, pieces), x);
}

Stage::Stage(const Maker& make, const std::string& name, int in, int out, int layers,
             bool attention) {
  for (int i = 0; i < layers; ++i) {
    const std::string number = std::to_string(i);
    resnets.emplace_back(make, name + ".resnets." + number, i == 0 ? in : out, out);
    if (!attention) continue;
    attentions.emplace_back(make, name + ".attentions." + number, out);
    time_attentions.emplace_back(make, name + ".temp_attentions." + number, out);
  }
}

Tensor Stage::forward(Pass& pass, Tensor x) const {
  for (std::size_t i = 0; i < resnets.size(); ++i) {
    x = resnets[i].forward(pass, x);
    if (attentions.empty()) continue;
    x = attentions[i].forward_in_frame(pass, x);
    x = time_attentions[i].forward_along_time(pass, x);
  }
  return x;
}

Downsample::Downsample(const Maker& make, const std::string& name, int channels, bool with_time)
    : space(make, name + ".conv1", channels, channels, 1, 3),
      time(with_time ? std::optional<Kernel>(std::in_place, make, name + ".conv2", channels,
                                             channels, 3, 1)
                     : std::nullopt),
      point(make, name + ".conv3", channels, channels, 1, 1) {}

Tensor Downsample::forward(Pass& pass, const Tensor& x) const {
  return as_block(pass, x, [this](Pass& p, const Tensor& in) { return run(p, in); });
}

Tensor Downsample::run(Pass& pass, Tensor x) const {
  ops::SpaceConv how{.stride = 2, .residual = ops::pool_space(pass.tape, x)};
  if (!time) return convolve_at_points(pass, point, convolve_in_space(pass, space, x, how));
  LayerState* const state = pass.next_state();
  how.lead = lead_of(state, pass.start);
  x = convolve_in_space(pass, space, x, how);
  keep_history(pass, state, x, 1);
  x = convolve_in_time(pass, *time, x, {.stride = 2, .residual = ops::pool_time(pass.tape, x)});
  return convolve_at_points(pass, point, x);
}

Upsample::Upsample(const Maker& make, const std::string& name, int channels, bool with_time)
    : time(with_time ? std::optional<Kernel>(std::in_place, make, name + ".conv1", channels,
                                             channels, 3, 1)
                     : std::nullopt),
      space(make, name + ".conv2", channels, channels, 1, 3),
      point(make, name + ".conv3", channels, channels, 1, 1) {}

Tensor Upsample::forward(Pass& pass, const Tensor& x) const {
  return as_block(pass, x, [this](Pass& p, const Tensor& in) { return run(p, in); });
}

Tensor Upsample::run(Pass& pass, Tensor x) const {
  if (time) {
    LayerState* const state = pass.next_state();
    x = ops::repeat_time(pass.tape, x, pass.start, lead_of(state, pass.start));
    keep_history(pass, state, x, 2);
    x = convolve_in_time(pass, *time, x, {.add_last = true});
  }
  x = ops::repeat_space(pass.tape, x);
  x = convolve_in_space(pass, space, x, {.residual = x});
  return convolve_at_points(pass, point, x);
}

Middle::Middle(const Maker& make, const std::string& name, int channels)
    : before(make, name + ".resnets.0", channels, channels),
      attention(make, name + ".attentions.0", channels),
      time_attention(make, name + ".temp_attentions.0", channels),
      after(make, name + ".resnets.1", channels, channels) {}

Tensor Middle::forward(Pass& pass, Tensor x) const {
  x = before.forward(pass, x);
  x = attention.forward_in_frame(pass, x);
  x = time_attention.forward_along_time(pass, x);
  return after.forward(pass, x);
}

}  // namespace vfm::models::cosmos

// The layers of a Cosmos tokenizer, on videos with channels last. Only for autoencoder.cc.
//
// Each layer runs on a whole video, on the next frames of a stream (what it needs of earlier frames
// is kept), or on a band of the rows (models/cosmos/spatial_exchange.h), with the same result.
// Shape letters: T frames, H rows, W columns, C channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "models/cosmos/spatial_exchange.h"
#include "models/cosmos/time_exchange.h"
#include "nn/weight.h"
#include "ops/attention/video_attention.h"
#include "ops/conv/conv.h"

namespace vfm::models::cosmos {

/// The state that a layer keeps from earlier frames.
struct LayerState {
  Tensor history;      ///< for a convolution in time: the frames that it looks back at
  ops::TimeKeys past;  ///< for attention along time: keys and values of all frames
};

/// The states of all layers, in the order in which the layers run.
struct StreamState {
  std::vector<LayerState> layers;
  bool begun = false, ended = false;
};

/// One run of the network over some frames.
struct Pass {
  ops::Tape& tape;
  bool start = true;                          ///< the frames are the first of the video
  bool last = true;                           ///< no frames follow, so nothing more is kept
  StreamState* stream = nullptr;              ///< null: the frames are the whole video
  const SpatialExchange* exchange = nullptr;  ///< null: the frames have all rows
  TimeExchange* time = nullptr;  ///< not null: several ranks share the chunks of the stream
  std::size_t layer = 0;         ///< the next layer that keeps something
  bool recompute = false;        ///< keep only a block's input and recompute the rest in backward

  /// The state of the next layer that keeps something; null without a stream.
  LayerState* next_state();
};

/// Makes weights under diffusers' names.
struct Maker {
  std::deque<nn::Weight>& weights;
  nn::WeightOptions options;

  const nn::Weight* kernel(const std::string& name, const Shape& shape) const;
  const nn::Weight* vector(const std::string& name, std::int64_t size, nn::Init init) const;
};

/// A convolution's weights.
struct Kernel {
  Kernel(const Maker& make, const std::string& name, int in, int out, int t, int space);
  const nn::Weight *w, *bias;
};

/// A (1,3,3) convolution, then a (3,1,1) convolution.
struct Projection {
  Projection(const Maker& make, const std::string& name, int in, int out);
  /// Adds `residual`, which has the layout of the result, to the result.
  Tensor forward(Pass& pass, Tensor x, const Tensor& residual = {}) const;
  Kernel space, time;
};

struct Norm {
  Norm(const Maker& make, const std::string& name, int channels);
  Tensor forward(Pass& pass, const Tensor& x, bool silu) const;
  const nn::Weight *w, *bias;
};

struct Resnet {
  Resnet(const Maker& make, const std::string& name, int in, int out);
  Tensor forward(Pass& pass, const Tensor& x) const;

 private:
  Tensor run(Pass& pass, const Tensor& x) const;
  Norm norm1;
  Projection conv1;
  Norm norm2;
  Projection conv2;
  std::optional<Kernel> shortcut;
};

/// Attention with its residual: within each frame, or along time for each pixel.
struct Attention {
  Attention(const Maker& make, const std::string& name, int channels);
  Tensor forward_in_frame(Pass& pass, const Tensor& x) const;
  Tensor forward_along_time(Pass& pass, const Tensor& x) const;

 private:
  Tensor run_in_frame(Pass& pass, const Tensor& x) const;
  Tensor run_along_time(Pass& pass, const Tensor& x) const;
  Norm norm;
  Kernel q, k, v, out;
};

/// Residual blocks, each perhaps followed by attention, then a change of resolution.
struct Stage {
  Stage(const Maker& make, const std::string& name, int in, int out, int layers, bool attention);
  Tensor forward(Pass& pass, Tensor x) const;
  std::deque<Resnet> resnets;
  std::deque<Attention> attentions, time_attentions;
};

struct Downsample {
  Downsample(const Maker& make, const std::string& name, int channels, bool time);
  Tensor forward(Pass& pass, const Tensor& x) const;

 private:
  Tensor run(Pass& pass, Tensor x) const;
  Kernel space;
  std::optional<Kernel> time;
  Kernel point;
};

struct Upsample {
  Upsample(const Maker& make, const std::string& name, int channels, bool time);
  Tensor forward(Pass& pass, const Tensor& x) const;

 private:
  Tensor run(Pass& pass, Tensor x) const;
  std::optional<Kernel> time;
  Kernel space, point;
};

/// Residual block, both attentions, residual block.
struct Middle {
  Middle(const Maker& make, const std::string& name, int channels);
  Tensor forward(Pass& pass, Tensor x) const;
  Resnet before;
  Attention attention, time_attention;
  Resnet after;
};

}  // namespace vfm::models::cosmos

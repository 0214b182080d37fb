// The layers of a Cosmos tokenizer, on videos channels last. For autoencoder.cc alone.
//
// Each layer runs on a whole video, on the next frames of one (a stream: what it needs of the
// frames before is kept), and on a band of its rows (models/cosmos/spatial_exchange.h), to the same
// result. Shape letters: T frames, H rows, W columns, C channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "models/cosmos/spatial_exchange.h"
#include "models/cosmos/time_exchange.h"
#include "nn/weight.h"
#include "ops/attention/time_attention.h"
#include "ops/conv/conv.h"

namespace vfm::models::cosmos {

/// What a layer keeps of the frames that it has seen.
struct LayerState {
  Tensor history;      ///< of a convolution in time: the frames that it looks back at
  ops::TimeKeys past;  ///< of an attention along time: keys and values of all frames
};

/// What all layers keep, in the order in which they run.
struct StreamState {
  std::vector<LayerState> layers;
  bool begun = false, ended = false;
};

/// One run of the network over some frames.
struct Pass {
  ops::Tape& tape;
  bool start = true;                          ///< whether the frames are the first of the video
  bool last = true;                           ///< whether none follow them: nothing more is kept
  StreamState* stream = nullptr;              ///< null: they are the whole video
  const SpatialExchange* exchange = nullptr;  ///< null: they are whole
  TimeExchange* time = nullptr;               ///< of a stream: its chunks are of several ranks
  std::size_t layer = 0;                      ///< the next layer that keeps something
  bool recompute = false;  ///< backward recomputes a block, of which its input is kept

  /// What the next such layer has kept; without a stream, null.
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

/// (1,3,3) and then (3,1,1).
struct Projection {
  Projection(const Maker& make, const std::string& name, int in, int out);
  /// `residual`, laid out as the result, is added to it.
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

/// Attention with its residual: in each frame, or along time for each pixel.
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

/// Residual blocks, perhaps each with attention after it, then a change of resolution.
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

// The blocks of Wan's video autoencoder, on frames [H, W, C] that come one by one
// (models/wan_vae/causal_conv.h). Only for autoencoder.cc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/wan_vae/causal_conv.h"
#include "ops/conv/resample.h"

namespace vfm::models::wan_vae {

struct Resnet {
  Resnet(const Maker& make, const std::string& name, int in, int out);
  Tensor forward(const Pass& pass, Tensor x) const;

 private:
  Norm norm1;
  CausalConv conv1;
  Norm norm2;
  CausalConv conv2;
  std::optional<Kernel> shortcut;
  int out;
};

/// Attention of each pixel to its frame.
struct Attention {
  Attention(const Maker& make, const std::string& name, int channels);
  Tensor forward(const Pass& pass, const Tensor& x) const;

 private:
  Norm norm;
  Kernel qkv, proj;
};

/// Residual block, attention, residual block.
struct Middle {
  Middle(const Maker& make, const std::string& name, int channels);
  Tensor forward(const Pass& pass, Tensor x) const;

 private:
  Resnet before;
  Attention attention;
  Resnet after;
};

/// Halves rows and columns, and perhaps frames.
struct Downsample {
  Downsample(const Maker& make, const std::string& name, int channels, bool time);
  /// `shortcut` is added, or undefined. Returns nothing for every other frame if time is halved.
  Tensor forward(const Pass& pass, const Tensor& x, const Tensor& shortcut) const;

 private:
  Kernel space;
  std::optional<Kernel> time;
  std::size_t layer = 0;
};

/// Doubles rows and columns, and perhaps frames.
struct Upsample {
  Upsample(const Maker& make, const std::string& name, int in, int out, bool time);
  /// The frames that x becomes in time: x itself for the first frame of a video, else two.
  std::vector<Tensor> in_time(const Pass& pass, Tensor x) const;
  /// One of these frames with twice the rows and columns. If `coarse` is defined, frame `frame` of
  /// its patches is added (ops::repeat_patches()).
  Tensor in_space(const Pass& pass, const Tensor& x, const Tensor& coarse,
                  const ops::PatchShape& patch, int frame) const;

 private:
  std::optional<Kernel> time;
  Kernel space;
  int out;
  std::size_t layer = 0;
};

}  // namespace vfm::models::wan_vae

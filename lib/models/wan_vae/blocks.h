// The layers of Wan's video autoencoder. Only for autoencoder.cc.
//
// A layer takes one frame [H, W, C] at a time, in the order of the video. A convolution over time
// keeps the two frames that it saw last; frames before the first are zeros. Convolutions go over
// the picture in bands of rows, from top to bottom: a row of the result needs one row above and one
// below, and a norm is of each pixel alone, so bands give the same result as whole frames. Beside
// what is kept, a layer then takes memory for its input, its result and a band.
// Shape letters: H rows, W columns, C channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nn/weight.h"
#include "ops/conv/regroup.h"

namespace vfm::models::wan_vae {

/// What a layer keeps of earlier frames.
struct LayerState {
  std::array<Tensor, 2> frames;  ///< the last frames, the older one first; undefined: zeros
  Tensor shortcut;               ///< of a level that halves time: means of an unfinished pair
  std::int64_t seen = 0;         ///< frames that the layer has had
};

/// One run of a network over a frame.
struct Pass {
  std::vector<LayerState>& states;  ///< of all layers of the network
  std::int64_t band_pixels = 0;     ///< pixels of a band, about; at least a row
  bool last = false;                ///< no frame follows, so nothing is kept any more

  LayerState& of(std::size_t layer) const { return states[layer]; }
  std::int64_t rows_of(std::int64_t height, std::int64_t width) const;  ///< of a band
};

/// Makes weights under diffusers' names, and counts the layers that keep something.
struct Maker {
  std::deque<nn::Weight>& weights;
  nn::WeightOptions options;
  std::size_t& layers;

  const nn::Weight* kernel(const std::string& name, const Shape& shape) const;
  const nn::Weight* vector(const std::string& name, const Shape& shape, nn::Init init) const;
  std::size_t layer() const { return layers++; }
};

/// Puts the weights of convolutions into the order in which they are convolved with.
void arrange_kernels(const std::deque<nn::Weight>& weights);

/// A convolution's weights, after arrange_kernels().
struct Kernel {
  /// `shape` begins with output and input channels.
  Kernel(const Maker& make, const std::string& name, const Shape& shape);
  const nn::Weight *w, *bias;
};

struct Norm {
  Norm(const Maker& make, const std::string& name, int channels, bool of_video = true);
  /// Norm and SiLU of x into y.
  void forward(const Tensor& x, const Tensor& y, bool silu = true) const;
  const nn::Weight* w;
};

/// A 3 x 3 x 3 convolution of a frame and those before it.
class CausalConv {
 public:
  CausalConv(const Maker& make, const std::string& name, int in, int out);

  /// A frame on its way through, in bands.
  class Frame {
   public:
    /// Writes rows [begin, end) of the input to `to` [end - begin, W, I].
    using Fill = std::function<void(std::int64_t begin, std::int64_t end, const Tensor& to)>;

    Frame(const CausalConv& conv, const Pass& pass, std::int64_t height, std::int64_t width);
    /// Returns rows [begin, end) of the result, which follow those of the call before. `residual`
    /// has that many rows and is added. `y` undefined: a new tensor.
    Tensor rows(std::int64_t begin, std::int64_t end, const Fill& fill, const Tensor& residual,
                Tensor y = {});

   private:
    void keep(std::int64_t end);
    void finish();

    const CausalConv& conv_;
    LayerState& state_;
    bool keeps_;
    std::int64_t height_, width_;
    std::vector<Tensor> past_;                          // frames before, the older one first
    Tensor kept_;                                       // where this frame is kept
    Tensor window_;                                     // [frames, rows, W, I]
    std::int64_t first_ = 0, filled_ = 0, stored_ = 0;  // rows: of the window, filled, kept
  };

  /// The whole frame x, convolved.
  Tensor forward(const Pass& pass, const Tensor& x) const;
  /// The same after norm and SiLU.
  Tensor forward(const Pass& pass, const Tensor& x, const Norm& norm) const;

 private:
  Tensor over_bands(const Pass& pass, const Tensor& x, const Frame::Fill& fill) const;

  Kernel kernel_;
  int in_, out_;
  std::size_t layer_;
};

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
  Tensor forward(const Tensor& x) const;

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

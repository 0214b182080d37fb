// The convolution of Wan's video autoencoder: over a frame and the two frames before it, in bands
// of rows. Also what all its layers share. Only for autoencoder.cc and blocks.cc.
//
// A layer takes one frame [H, W, C] at a time, in the order of the video. A convolution over time
// keeps the two frames that it saw last; frames before the first are zeros. It goes over the
// picture in bands of rows, from top to bottom: a row of the result needs one row above and one
// below, and a norm is of each pixel alone, so bands give the same result as whole frames. Beside
// what is kept, a layer then takes memory for its input, its result and a band.
// Shape letters: H rows, W columns, I input and O output channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "models/cosmos/spatial_exchange.h"
#include "nn/weight.h"
#include "ops/conv/conv2d.h"

namespace vfm::models::wan_vae {

/// What a layer keeps of earlier frames.
struct LayerState {
  std::array<Tensor, 2> frames;  ///< the last frames, the older one first; undefined: zeros
  Tensor shortcut;               ///< of a level that halves time: means of an unfinished pair
  std::int64_t seen = 0;         ///< frames that the layer has had

  std::vector<Tensor> past() const;  ///< the frames that are defined
  void remember(const Tensor& frame);
};

/// One run of a network over a frame.
struct Pass {
  std::vector<LayerState>& states;         ///< of all layers of the network
  std::int64_t band_pixels = 0;            ///< pixels of a band, about; at least a row
  bool last = false;                       ///< no frame follows, so nothing is kept any more
  const SpatialExchange* ranks = nullptr;  ///< not null: this rank has some rows of the frame

  LayerState& of(std::size_t layer) const { return states[layer]; }
  bool above() const { return ranks != nullptr && !ranks->first(); }  ///< others have rows above
  bool below() const { return ranks != nullptr && !ranks->last(); }
  /// x with `rows` rows of the rank above and of that below, if there are such ranks.
  Tensor extended(const Tensor& x, std::int64_t rows) const;
  /// Calls work(begin, end) for the bands of a picture, from top to bottom.
  template <class Work>
  void each_band(std::int64_t height, std::int64_t width, const Work& work) const {
    const std::int64_t rows = rows_of(height, width);
    for (std::int64_t begin = 0; begin < height; begin += rows)
      work(begin, begin + rows < height ? begin + rows : height);
  }

 private:
  std::int64_t rows_of(std::int64_t height, std::int64_t width) const;
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
  /// Its channels from `first` on, conv.out of them.
  void convolve(ops::Conv2d conv, const Tensor& x, const Tensor& residual, const Tensor& y,
                std::int64_t first = 0) const;
  /// Channels [first, end) of a convolution at points, as one of their own.
  Tensor at_points(const Tensor& x, std::int64_t first, std::int64_t end,
                   const Tensor& residual = {}) const;
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

  /// A frame on its way through, in bands. Rows are counted in its input, whose first (last) row
  /// may belong to another rank: no result is made of it.
  class Frame {
   public:
    /// Writes rows [begin, end) of the input to `to` [end - begin, W, I].
    using Fill = std::function<void(std::int64_t begin, std::int64_t end, const Tensor& to)>;

    Frame(const CausalConv& conv, const Pass& pass, std::int64_t height, std::int64_t width);
    /// Writes rows [begin, end) of the result, which follow those of the call before, to y [end -
    /// begin, W, O]. `residual` is undefined or like y, may be y, and is added.
    void rows(std::int64_t begin, std::int64_t end, const Fill& fill, const Tensor& residual,
              const Tensor& y);

   private:
    void keep(std::int64_t end);
    void finish();

    const CausalConv& conv_;
    LayerState& state_;
    bool keeps_;
    std::int64_t height_, width_, end_;                 // end_: of the result
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

}  // namespace vfm::models::wan_vae

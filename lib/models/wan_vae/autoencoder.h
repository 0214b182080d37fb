// The network of Wan's video autoencoder, with diffusers' parameter names (AutoencoderKLWan).
//
// Encoder: causal convolutions at falling resolution; in the middle attention within each frame; a
// convolution at points. Decoder: the mirror image. A frame depends only on itself and earlier
// frames, through the two last frames that each convolution keeps. So a video comes frame by frame
// (a stream), in memory for a frame and what is kept, which does not grow with the video. Within a
// frame, layers but the attention work on bands of rows (models/wan_vae/blocks.h).
//
// The reference takes the first frame alone, then four at a time, and keeps frames between its
// convolutions just so. Two things differ from convolutions of the whole video: halving in time
// passes the first frame on unchanged; doubling in time makes one frame of the first latent frame,
// and its convolution takes zeros in place of that frame later on.
// Source: Wan Team, "Wan: open and advanced large-scale video generative models" (2025), section
// 4.1; diffusers' AutoencoderKLWan.
// Thread-safety: streams of one model may run on any threads, on the CPU.
// Shape letters: H W pixels, h w latent, C latent channels, P side of a patch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "models/cosmos/spatial_exchange.h"
#include "models/wan_vae/config.h"
#include "nn/parameter.h"

namespace vfm::models {

class WanAutoencoder {
 public:
  /// `compute` is f32 or bf16 for convolutions and activations; norms and sums are f32. Weights
  /// have no gradients, and no values before they are written.
  WanAutoencoder(const WanVaeConfig& config, DType compute = DType::f32,
                 Device device = Device::cpu);
  ~WanAutoencoder();
  WanAutoencoder(WanAutoencoder&&) noexcept;

  const WanVaeConfig& config() const;
  Device device() const;
  /// Parameters in a fixed order. The pointers stay valid for the life of the model. The first
  /// encoder() or decoder() puts weights into another order: from then on nobody may read or write
  /// the values.
  const nn::ParameterList& parameters() const;

  /// A video frame by frame. The model must outlive it. Not thread-safe.
  class Encoder {
   public:
    ~Encoder();
    Encoder(Encoder&&) noexcept;
    /// Takes the next frame, f32 [H / P, W / P, 3 P P], pixels in [-1, 1]. H and W are multiples of
    /// the space factor. Returns the latent frame [h, w, C], f32, that it completes: one for the
    /// first frame, then one for every four. Undefined otherwise. It is the mode of the posterior.
    /// After the `last` frame none may follow, and nothing is kept.
    Tensor push(const Tensor& frame, bool last);

   private:
    friend class WanAutoencoder;
    struct State;
    explicit Encoder(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  class Decoder {
   public:
    /// Takes a frame [H / P, W / P, 3 P P], f32, not clamped.
    using Sink = std::function<void(const Tensor& frame)>;
    ~Decoder();
    Decoder(Decoder&&) noexcept;
    /// Takes the next latent frame, f32 [h, w, C], and passes its frames on as they are ready: one
    /// for the first, else four. `last` as for Encoder.
    void push(const Tensor& latent, bool last, const Sink& sink);

   private:
    friend class WanAutoencoder;
    struct State;
    explicit Decoder(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  /// `band_pixels`: about the number of pixels of a band of rows; at least a row.
  Encoder encoder(std::int64_t band_pixels) const;
  /// With `ranks` these decode together, each its rows of the latent, at least two: all call push()
  /// at the same time with their rows. `ranks` must outlive the decoder.
  Decoder decoder(std::int64_t band_pixels, const SpatialExchange* ranks = nullptr) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::models

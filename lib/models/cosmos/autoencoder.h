// The network of NVIDIA's Cosmos tokenizers: a causal video autoencoder with diffusers' parameter
// names (AutoencoderKLCosmos). It is continuous, or discrete with codes between encoder and
// decoder.
//
// Encoder: Haar patches; convolutions at falling resolution, one over each frame and one over three
// frames; in the middle attention within each frame and attention of each pixel to its past.
// Decoder: the mirror image.
// A frame depends only on itself and earlier frames, and norms are over one frame. So the frames of
// a video may come in chunks (a stream), with the same bits, in memory for a chunk. Only keys and
// values of the attention along time grow, by 2 h w C numbers per latent frame; the activations of
// a chunk are 50 times as many. A picture may also be cut in bands of rows
// (models/cosmos/spatial_exchange.h).
// Source: NVIDIA, "Cosmos World Foundation Model Platform for Physical AI" (2025), section 3.
// Thread-safety: forward passes without recording from any thread, on the CPU.
// Shape letters: T H W pixels, t h w latent, C latent channels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/cosmos/config.h"
#include "models/cosmos/spatial_exchange.h"
#include "models/cosmos/time_exchange.h"
#include "nn/parameter.h"
#include "ops/tape.h"

namespace vfm::models {

class CosmosAutoencoder {
 public:
  /// Weights are drawn from Philox(seed, weight_init, name): kernels uniform as PyTorch's
  /// convolutions, norms one, biases zero. `compute` is f32 or bf16 for convolutions and
  /// activations; norms and sums stay f32. If `trainable` is false, weights have no gradients, and
  /// no values before they are written.
  CosmosAutoencoder(const CosmosConfig& config, std::uint64_t seed, DType compute = DType::f32,
                    Device device = Device::cpu, bool trainable = true);
  ~CosmosAutoencoder();
  CosmosAutoencoder(CosmosAutoencoder&&) noexcept;

  const CosmosConfig& config() const;
  Device device() const;
  /// Parameters in a fixed order. The pointers stay valid for the life of the model.
  const nn::ParameterList& parameters() const;

  /// If true, backward recomputes each block from its input instead of keeping the activations. The
  /// gradients are the same, for a third more time and a fraction of the memory.
  void set_recompute(bool recompute);

  /// pixels [T, H, W, 3] in [-1, 1], f32, with T = 1 + k time factors and H and W multiples of the
  /// space factor. Returns latents [t, h, w, C], f32; of a discrete model the numbers before
  /// quantisation.
  Tensor encode(ops::Tape& tape, const Tensor& pixels) const;
  /// latents [t, h, w, C], f32. Returns pixels [T, H, W, 3], f32, not clamped.
  Tensor decode(ops::Tape& tape, const Tensor& latents) const;

  /// The same for a band of the rows, which has whole latent rows. All exchange.parts() ranks call
  /// this at the same time. Without gradients.
  Tensor encode_part(const SpatialExchange& exchange, const Tensor& pixels) const;
  Tensor decode_part(const SpatialExchange& exchange, const Tensor& latents) const;

  /// A video chunk by chunk. The model must outlive it. Not thread-safe.
  class Stream {
   public:
    ~Stream();
    Stream(Stream&&) noexcept;
    /// Takes the next frames, at least those of one latent frame, and returns their result. When
    /// encoding, the first call has 1 + k time factors of frames, later calls multiples of the time
    /// factor. After the `last` frames none may follow, and nothing is kept. So a video passed in
    /// one call takes at most half the memory.
    Tensor push(const Tensor& frames, bool last = false);

   private:
    friend class CosmosAutoencoder;
    struct State;
    explicit Stream(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  Stream encode_stream() const;
  Stream decode_stream() const;
  /// Decodes on ranks that share the video. Each has a band of rows (`bands`), or a chunk of each
  /// round (`chunks`), or both. push() this rank's band of its chunk, in each round in which it has
  /// one. `bands` null: whole rows; `chunks` null: all chunks. The exchanges must outlive the
  /// stream.
  Stream decode_stream(const SpatialExchange* bands, TimeExchange* chunks) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::models

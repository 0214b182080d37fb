// The network of NVIDIA's Cosmos tokenizers: a causal video autoencoder, under diffusers' parameter
// names (AutoencoderKLCosmos), continuous, or discrete between encoder and decoder.
//
// Encoder: Haar patches; convolutions, one over each frame and one over three frames, at falling
// resolution; in the middle attention within each frame and attention of each pixel to its past.
// Decoder: the mirror image. Frames depend on themselves and those before alone, norms are over one
// frame: so the frames of a video may come in chunks (a stream), with the same bits, in memory for
// a chunk. Only keys and values of the attention along time grow: 2 h w C numbers for each latent
// frame, where activations of a chunk are 50 times as many. And a picture may be cut in bands of
// rows (models/cosmos/spatial_exchange.h).
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
  /// convolutions, norms one, biases zero. `compute` is f32 or bf16 (convolutions and activations;
  /// norms and sums stay f32). One that is not to be trained has no gradients, and no values before
  /// they are written.
  CosmosAutoencoder(const CosmosConfig& config, std::uint64_t seed, DType compute = DType::f32,
                    Device device = Device::cpu, bool trainable = true);
  ~CosmosAutoencoder();
  CosmosAutoencoder(CosmosAutoencoder&&) noexcept;

  const CosmosConfig& config() const;
  Device device() const;
  /// In a fixed order; stable for the life of the model.
  const nn::ParameterList& parameters() const;

  /// Whether backward recomputes each block from its input, instead of keeping what is inside: the
  /// same gradients, a third more time, a fraction of the memory.
  void set_recompute(bool recompute);

  /// pixels [T, H, W, 3] in [-1, 1], f32, T = 1 + k time factors, H and W multiples of the space
  /// factor: latents [t, h, w, C], f32. Of a discrete one numbers before they are quantised.
  Tensor encode(ops::Tape& tape, const Tensor& pixels) const;
  /// latents [t, h, w, C], f32: pixels [T, H, W, 3], f32, not clamped.
  Tensor decode(ops::Tape& tape, const Tensor& latents) const;

  /// The same for a band of the rows, one of exchange.parts() that call this at the same time, each
  /// with whole latent rows. Without gradients.
  Tensor encode_part(const SpatialExchange& exchange, const Tensor& pixels) const;
  Tensor decode_part(const SpatialExchange& exchange, const Tensor& latents) const;

  /// A video chunk by chunk. The model must outlive it. Not thread-safe.
  class Stream {
   public:
    ~Stream();
    Stream(Stream&&) noexcept;
    /// The next frames, at least one latent frame's: encoding 1 + k time factors at first, then
    /// multiples of the time factor. What they become. After the `last` none follow, and nothing
    /// is kept: a video that comes at once takes half the memory or less.
    Tensor push(const Tensor& frames, bool last = false);

   private:
    friend class CosmosAutoencoder;
    struct State;
    explicit Stream(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  Stream encode_stream() const;
  Stream decode_stream() const;
  /// The same of ranks that have bands of rows, or a chunk each, or bands of a chunk: push() this
  /// rank's band, of each round in which it has a chunk. Null: whole rows, or all chunks. The
  /// exchanges must outlive it.
  Stream decode_stream(const SpatialExchange* bands, TimeExchange* chunks) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::models

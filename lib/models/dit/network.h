// What the diffusion networks have in common: configuration, batches, and the interface that
// training, checkpoints and generation use. The networks: dit.h, stdit.h, moviegen.h.
//
// A batch is a *pack*: samples of any sizes, images (one frame) and videos mixed, one after the
// other. Attention never crosses samples; each sample has its own noise level, frame rate, size
// and text.
// Shape letters: C latent channels, T frames, H, W, L text tokens of the pack, E text width.
// Thread-safety: a network may be asked forward() from several threads, each with its own tape; all
// else from one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "nn/attached_adapters.h"
#include "nn/network_layout.h"
#include "nn/parameter.h"
#include "nn/recompute.h"
#include "nn/staged_forward.h"
#include "ops/tape.h"

namespace vfm::models {

struct Architecture;             // models/dit/architecture.h
extern const Architecture kDit;  // models/dit/dit.h

/// The configuration of a network: what every architecture has, and its own fields.
struct NetworkConfig {
  const Architecture* architecture = &kDit;
  int in_channels = 16;  ///< latent channels, without the padding mask
  int out_channels = 16;
  int num_attention_heads = 32;
  int attention_head_dim = 128;
  int num_layers = 28;
  double mlp_ratio = 4.0;  ///< the MLP's hidden width over the width
  int text_embed_dim = 1024;
  std::array<int, 3> max_size = {128, 240, 240};  ///< latent T, H, W of the position tables
  std::array<int, 3> patch_size = {1, 2, 2};
  bool concat_padding_mask = true;
  std::any fields = {};  ///< of the architecture: see own()

  /// The fields that the architecture alone has, a struct in the header of its network. Each has
  /// its default as long as it was not set.
  template <class Fields>
  const Fields& own() const {
    static const Fields usual;
    const Fields* found = std::any_cast<Fields>(&fields);
    return found ? *found : usual;
  }
  template <class Fields>
  Fields& own() {
    if (!std::any_cast<Fields>(&fields)) fields = Fields();
    return *std::any_cast<Fields>(&fields);
  }

  int width() const { return num_attention_heads * attention_head_dim; }
  int key_value_heads() const;
  std::int64_t hidden() const;  ///< width of the MLP
  nn::HeadShape heads() const;
  /// Whether one more channel goes in than comes out: the last one marks given frames.
  bool video_to_world() const { return in_channels == out_channels + 1; }
  /// Throws Error{usage} naming the field.
  void validate() const;
};

/// One sample of a pack. Sizes are of the latent, multiples of the patch size.
struct NetworkSample {
  int frames = 1, height = 0, width = 0;
  float fps = 0;        ///< of the pixels; 0 for an image: temporal position is the bare index
  float c_noise = 0;    ///< the time input: ln(sigma) / 4
  int text_tokens = 1;  ///< >= 1; "no text" is one zero token
  /// Positions from one token to the next along T, H, W. Below 1 more tokens share the range of
  /// positions that training saw; only without recording.
  std::array<double, 3> position_step = {1, 1, 1};

  std::int64_t tokens(const NetworkConfig& config) const;
};

struct NetworkBatch {
  std::vector<NetworkSample> samples;
  Tensor latents;  ///< f32, flat: each sample's (C, T, H, W), already scaled by c_in, one after the
                   ///< other
  Tensor text;     ///< f32 (L, E): each sample's text tokens, one after the other
  /// f32, a number a sample: takes the place of the samples' own c_noise, if it is defined. What
  /// may differ between two batches of the same sizes and frame rates is in tensors then, and
  /// nowhere else: forward() can be recorded and repeated (tensor/graph_cache.h).
  Tensor c_noise;

  Tensor noise_levels(Device device) const;  ///< the samples' c_noise on `device`
  /// Throws Error unless samples and tensors fit each other and the configuration.
  void check(const NetworkConfig& config) const;
};

/// What inference computes in FP8 (E4M3) instead of in the model's own type (models/dit/fp8.h).
struct Fp8Parts {
  bool linear = false;     ///< products with the blocks' matrices
  bool attention = false;  ///< self-attention; of a bf16 model only
  bool any() const { return linear || attention; }
};

/// A network from noisy latents and text to F (models/process/process.h).
class DiffusionNetwork {
 public:
  virtual ~DiffusionNetwork() = default;

  virtual const NetworkConfig& config() const = 0;
  virtual Device device() const = 0;
  /// In a fixed order; stable for the life of the network.
  virtual const nn::ParameterList& parameters() const = 0;
  /// Puts adapters on matrices (lora.h), which alone are trained then, or nothing; for one made
  /// with `trainable` false. Throws Error{usage} for what is no matrix.
  virtual void attach(const std::vector<nn::AdapterShape>& shapes, bool trainable) = 0;
  /// Of each "MODULE.lora_A.weight" [rank, I] and "MODULE.lora_B.weight" [O, rank].
  virtual const nn::ParameterList& adapters() const = 0;
  /// With `offload` what goes into whole blocks waits for backward in the host's memory. Whatever
  /// is chosen, the results are the same to the last bit.
  virtual void set_recompute(nn::Recompute recompute, bool offload = false) = 0;
  /// Inference in FP8, or without (the default). The matrices are rounded now: call it again after
  /// changing them. With any part, forward() throws Error for a tape that records. Throws
  /// Error{usage} for a model that FP8 does not take, Error on a GPU without it.
  virtual void set_inference_fp8(Fp8Parts parts) = 0;
  /// Inference with the blocks' matrices in 8 bits, as NetworkLayout::quantized says: they are
  /// rounded now and have no values afterwards. The network must have been made with that, and
  /// without being trainable. Of a network that ranks share, a collective. Once.
  virtual void quantize() = 0;
  /// The raw network output F, f32, on device(), laid out as batch.latents with out_channels
  /// channels. The batch may be on the CPU. Throws Error for a batch that does not fit.
  virtual Tensor forward(ops::Tape& tape, const NetworkBatch& batch) const = 0;
  /// The same in parts: for ranks that have some of the blocks.
  virtual std::unique_ptr<nn::StagedForward> stages(ops::Tape& tape,
                                                    const NetworkBatch& batch) const = 0;
  /// Shapes of the tensors that go into a block (nn::Streams), for this rank's tokens.
  virtual std::vector<Shape> stream_shapes(const NetworkBatch& batch, std::size_t block) const = 0;
  /// Of values laid out as the batch's output those of this rank's tokens, with zeros elsewhere.
  virtual Tensor own_part(const Tensor& values, const NetworkBatch& batch) const = 0;
};

/// A network of this configuration. Weights are initialised from Philox(seed, weight_init, name):
/// equal for equal names. `compute` is f32 or bf16 (matrix products and activations; norms and sums
/// stay f32). The parameters and all that is computed lie on `device`. One that is not to be
/// trained has no gradients, and no values before they are written. With a layout it has this
/// rank's part of the weights, and forward() the output of its tokens, with zeros elsewhere. Throws
/// Error{usage} for a layout that it cannot have.
std::unique_ptr<DiffusionNetwork> make_network(const NetworkConfig& config, std::uint64_t seed,
                                               DType compute = DType::f32,
                                               Device device = Device::cpu, bool trainable = true,
                                               const nn::NetworkLayout& layout = {});

}  // namespace vfm::models

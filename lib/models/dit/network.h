// The common part of the diffusion networks: configuration, and the interface that training,
// checkpoints and generation use. architectures() lists the networks.
// Thread-safety: several threads may call a network's forward(), each with its own tape. Call all
// other members from one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/dit/network_batch.h"
#include "nn/attached_adapters.h"
#include "nn/network_layout.h"
#include "nn/parameter.h"
#include "nn/recompute.h"
#include "nn/staged_forward.h"
#include "ops/tape.h"

namespace vfm::models {

struct Architecture;             // models/dit/architecture.h
extern const Architecture kDit;  // models/dit/dit.h

/// The configuration of a network: fields of every architecture, and the architecture's own.
struct NetworkConfig {
  const Architecture* architecture = &kDit;
  int in_channels = 16;  ///< latent channels, without the padding mask
  int out_channels = 16;
  int num_attention_heads = 32;
  int attention_head_dim = 128;
  int num_layers = 28;
  double mlp_ratio = 4.0;  ///< hidden width of the MLP / width of the network
  int text_embed_dim = 1024;
  std::array<int, 3> max_size = {128, 240, 240};  ///< latent T, H, W of the position tables
  std::array<int, 3> patch_size = {1, 2, 2};
  bool concat_padding_mask = true;
  std::any fields = {};  ///< the architecture's own fields: see own()

  /// The architecture's own fields, a struct in the header of its network. Defaults if not set.
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
  int text_width() const;       ///< width of text tokens in blocks
  nn::HeadShape heads() const;
  /// True if the input has one channel more than the output: the last one marks given frames.
  bool video_to_world() const { return in_channels == out_channels + 1; }
  /// Throws Error{usage} naming the field.
  void validate() const;
};

/// How a network takes given frames.
enum class GivenFramesBy {
  none,        ///< not at all
  mark,        ///< a channel more than those of the latent is 1 there
  clean_time,  ///< the state is their latent, and the time input is 0 there: clean_frames
  /// The latent has the channels [state, mask, condition]. The mask has four, which are 1 for the
  /// given frames of pixels. The condition is the latent of a clip of the given frames and zeros.
  mask_and_latent,
};
/// Returns how a network of this configuration takes given frames, if it was trained with them.
GivenFramesBy given_by(const NetworkConfig& config);

/// Parts that inference computes in FP8 (E4M3) instead of the model's type (models/dit/fp8.h).
struct Fp8Parts {
  bool linear = false;     ///< products with the blocks' matrices
  bool attention = false;  ///< self-attention; of a bf16 model only
  bool any() const { return linear || attention; }
};

/// A network that computes F from noisy latents and text (models/process/process.h).
class DiffusionNetwork {
 public:
  virtual ~DiffusionNetwork() = default;

  /// Makes this the network of a number, of several (models/dit/switched_network.h). A collective.
  virtual void choose(int /*number*/) {}
  virtual const NetworkConfig& config() const = 0;
  virtual Device device() const = 0;
  /// The parameters in a fixed order, which is stable for the life of the network.
  virtual const nn::ParameterList& parameters() const = 0;
  /// Puts adapters on matrices (lora.h). They are trained if `trainable`. The network itself must
  /// have been made with `trainable` false. Throws Error{usage} for a module that is not a matrix.
  virtual void attach(const std::vector<nn::AdapterShape>& shapes, bool trainable) = 0;
  /// Each adapter has "MODULE.lora_A.weight" [rank, I] and "MODULE.lora_B.weight" [O, rank].
  virtual const nn::ParameterList& adapters() const = 0;
  /// With `offload` the inputs of recomputed blocks wait for backward in the host's memory. The
  /// results have the same bits for every choice.
  virtual void set_recompute(nn::Recompute recompute, bool offload = false) = 0;
  /// Chooses what inference computes in FP8 (default: nothing). Rounds the matrices now: call it
  /// again after changing them. With any part, forward() throws Error if the tape records. Throws
  /// Error{usage} if FP8 cannot compute this model, Error on a GPU without FP8.
  virtual void set_inference_fp8(Fp8Parts parts) = 0;
  /// Rounds the blocks' matrices to 8 bits (NetworkLayout::quantized) once and for all. For a
  /// network that was made with that format and is not trainable. A collective.
  virtual void quantize() = 0;
  /// Returns the network's output F, f32, on device(), in the layout of batch.latents with
  /// out_channels channels. The batch may be on the CPU. Throws Error if it does not fit.
  virtual Tensor forward(ops::Tape& tape, const NetworkBatch& batch) const = 0;
  /// Returns the same pass in parts, for ranks that have some of the blocks.
  virtual std::unique_ptr<nn::StagedForward> stages(ops::Tape& tape,
                                                    const NetworkBatch& batch) const = 0;
  /// Returns the shapes of a block's input tensors (nn::Streams), for this rank's tokens.
  virtual std::vector<Shape> stream_shapes(const NetworkBatch& batch, std::size_t block) const = 0;
  /// Returns `values`, laid out as the output, with zeros at tokens of other ranks.
  virtual Tensor own_part(const Tensor& values, const NetworkBatch& batch) const = 0;
};

/// Makes a network on `device`. Weights are initialised from Philox(seed, weight_init, name).
/// `compute`, f32 or bf16, is the type of products and activations; norms and sums are f32. Without
/// `trainable` the network has no gradients, and its weights have no values until they are written.
/// With a layout the network has this rank's part of the weights, and forward() returns zeros at
/// tokens of other ranks. Throws Error{usage} for a layout that the network cannot have.
std::unique_ptr<DiffusionNetwork> make_network(const NetworkConfig& config, std::uint64_t seed,
                                               DType compute = DType::f32,
                                               Device device = Device::cpu, bool trainable = true,
                                               const nn::NetworkLayout& layout = {});

}  // namespace vfm::models

// The part of a diffusion network around its layers: its state, patch embedding and position
// tables, and the last matrix. For the implementations of networks.
// Shape letters: S tokens of the pack, D width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "models/dit/network_pack.h"
#include "nn/attached_adapters.h"
#include "nn/attention.h"
#include "nn/block_weights.h"
#include "nn/norm.h"

namespace vfm::models {

/// The tensors and settings that all blocks of a network read.
struct BlockContext : nn::Pass {
  nn::Conditions conditions;
  Tensor positions;     ///< [S, D], added to the stream in each block; or undefined
  nn::SelfTokens self;  ///< the tokens of a sample
  nn::TextTokens text;
  /// What the last norm's modulation is made of; none: `conditions`.
  std::optional<nn::Conditions> last = {};
};

/// Parts of the frame that not every network has.
struct FrameParts {
  bool biases = false;  ///< of the patch embedding and the last matrix
};

struct NetworkFrame {
  /// Makes the patch embedding, and the position tables if the network has them. Throws
  /// Error{usage} for an impossible configuration or `compute`.
  NetworkFrame(const NetworkConfig& config, std::uint64_t seed, DType compute, Device device,
               bool trainable, const nn::NetworkLayout& layout = {}, const FrameParts& parts = {});
  virtual ~NetworkFrame() = default;
  NetworkFrame(const NetworkFrame&) = delete;
  NetworkFrame& operator=(const NetworkFrame&) = delete;

  /// Makes the blocks. Only weights of this rank's stage get memory. A Block is made of (make, name
  /// with a dot at its end, config), and of its number if blocks are not alike. Call it after the
  /// weights before the blocks are made.
  template <class Block>
  void make_blocks(std::deque<Block>& blocks) {
    make.options.blocks = layout.blocks;
    for (int i = 0; i < config.num_layers; ++i) {
      begin_block(i);
      const std::string name = "transformer_blocks." + std::to_string(i) + ".";
      if constexpr (std::is_constructible_v<Block, nn::WeightMaker&, const std::string&,
                                            const NetworkConfig&, int>)
        blocks.emplace_back(make, name, config, i);
      else
        blocks.emplace_back(make, name, config);
    }
    make.options.blocks = nullptr;
    begin_head();
  }
  /// Sets the last norm, makes the last matrix and lists the parameters. Call it after
  /// make_blocks().
  void finish(nn::AdaptiveNorm last_norm);
  /// See DiffusionNetwork::quantize().
  void quantize();
  /// Calls Weight::keep_fp8() for the matrices of blocks, in which a network computes nearly all
  /// its products.
  void keep_fp8(bool keep) const;

  /// Watches every parameter, so that layers that backward recomputes find them.
  void watch(ops::Tape& tape) const;
  /// Returns the embedded patches of this rank's tokens, [S, D] f32. With `offload` the embedding
  /// is recomputed like a block: its input waits in the host's memory.
  Tensor enter(ops::Tape& tape, const NetworkBatch& batch, const NetworkPack& pack) const;
  /// Returns the learned positions of this rank's tokens, [S, D]: see ops::learned_positions().
  Tensor positions(ops::Tape& tape, const NetworkPack& pack, bool unit) const;
  /// Returns the angles of the tokens whose queries this rank has, [S, K / 2] each, of those of all
  /// tokens of the pack.
  static ops::RotaryAngles own_angles(const ops::RotaryAngles& all, const NetworkPack& pack);
  /// Returns nn::Conditions::ones of modulations with `rows` rows: [rows, D].
  Tensor ones(std::int64_t rows) const;
  /// Returns what a recomputed block keeps.
  ops::KeptOfBlock kept_of_blocks() const { return nn::kept_of(recompute, offload); }
  /// Returns what follows from the pack and the text: all but positions, angles and what
  /// `conditions` says of the noise.
  BlockContext context(const ops::Tape& tape, const NetworkPack& pack, const Tensor& text) const;
  /// Returns the network's output from the stream after all blocks; zero at tokens of other ranks.
  Tensor leave(ops::Tape& tape, nn::Stream x, const nn::Conditions& conditions,
               const NetworkPack& pack) const;
  /// Returns the shape of the residual stream, [S, D].
  Shape stream_shape(const NetworkBatch& batch) const;
  /// See DiffusionNetwork::own_part().
  Tensor own_part(const Tensor& values, const NetworkBatch& batch) const;

  NetworkConfig config;
  DType compute;
  Device device;
  nn::NetworkLayout layout;
  nn::Recompute recompute = nn::Recompute::none;
  bool offload = false;            // inputs of recomputed blocks wait in the host's memory
  Fp8Parts fp8;                    // what inference computes in FP8
  std::deque<nn::Weight> weights;  // a deque, because weights must not move
  nn::WeightMaker make;
  nn::BlockWeights of_blocks{weights};
  nn::ParameterList parameters;
  nn::AttachedAdapters adapters;

 private:
  void begin_block(int i);
  void begin_head();
  /// Returns this rank's rows of `of_all`, which has a row for each token of the pack.
  Tensor own(ops::Tape& tape, const Tensor& of_all, const NetworkPack& pack) const;
  std::int64_t patch() const;
  int masks() const { return config.concat_padding_mask ? 1 : 0; }

  nn::Linear first_or_last(nn::Weight& matrix);

  const bool biases_;
  std::optional<nn::Linear> embed_, project_;
  std::optional<nn::AdaptiveNorm> last_norm_;
  std::array<const nn::Weight*, 3> tables_{};
};

}  // namespace vfm::models

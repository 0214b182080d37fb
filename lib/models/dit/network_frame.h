// What the diffusion networks have around their layers: the state of a network, its patch embedding
// and position tables, and the matrix at the end. For the networks of this folder.
// Shape letters: S tokens of the pack, D width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "models/dit/network_pack.h"
#include "nn/attached_adapters.h"
#include "nn/block_weights.h"
#include "nn/weight_maker.h"

namespace vfm::models {

struct NetworkFrame {
  /// Makes the patch embedding and, if `tables` are wanted, the position tables. Throws
  /// Error{usage} for a configuration or a `compute` that is not possible.
  NetworkFrame(const NetworkConfig& config, std::uint64_t seed, DType compute, Device device,
               bool trainable, bool tables, const nn::NetworkLayout& layout = {});
  virtual ~NetworkFrame() = default;
  NetworkFrame(const NetworkFrame&) = delete;
  NetworkFrame& operator=(const NetworkFrame&) = delete;

  /// Makes the last matrix and lists the parameters, when all others were made.
  void finish();
  /// To be called before the weights of block `i`, and before those after all blocks, are made:
  /// they are there if their stage is this rank's.
  void begin_block(int i);
  void begin_head();
  /// As DiffusionNetwork::quantize() says.
  void quantize();

  /// Watches every parameter, so that a layer that backward recomputes finds it.
  void watch(ops::Tape& tape) const;
  /// [S, D] f32: the embedded patches, this rank's as of all that follows. Itself a block, if what
  /// goes into blocks waits in the host's memory.
  Tensor enter(ops::Tape& tape, const NetworkBatch& batch, const NetworkPack& pack) const;
  /// [S, D] of the tables, as ops::learned_positions() has it.
  Tensor positions(ops::Tape& tape, const NetworkPack& pack, bool unit) const;
  /// What a block keeps that is recomputed.
  ops::KeptOfBlock kept_of_blocks() const { return nn::kept_of(recompute, offload); }
  /// The network's output, of the last norm's [S, D]; zero where the token is another rank's.
  Tensor leave(ops::Tape& tape, const Tensor& normed, const NetworkPack& pack) const;
  /// Shape of the residual stream, [S, D].
  Shape stream_shape(const NetworkBatch& batch) const;
  /// As DiffusionNetwork::own_part() says.
  Tensor own_part(const Tensor& values, const NetworkBatch& batch) const;

  NetworkConfig config;
  DType compute;
  Device device;
  nn::NetworkLayout layout;
  nn::Recompute recompute = nn::Recompute::none;
  bool offload = false;            // what goes into blocks that are recomputed
  std::deque<nn::Weight> weights;  // does not move them
  nn::WeightMaker make;
  nn::BlockWeights of_blocks{weights};
  nn::ParameterList parameters;
  nn::AttachedAdapters adapters;

 private:
  /// This rank's rows of [S, ...].
  Tensor own(ops::Tape& tape, const Tensor& of_all, const NetworkPack& pack) const;
  std::int64_t patch() const;
  int masks() const { return config.concat_padding_mask ? 1 : 0; }

  const nn::Weight *embed_ = nullptr, *project_ = nullptr;
  std::array<const nn::Weight*, 3> tables_{};
};

}  // namespace vfm::models

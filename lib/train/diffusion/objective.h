// Diffusion training as an objective: a network (models/dit/network.h) and the loss of
// train/diffusion/loss.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "models/dit/network.h"
#include "tensor/graph_cache.h"
#include "train/diffusion/loss.h"
#include "train/step/chunks.h"
#include "train/step/objective.h"

namespace vfm::train {

class DiffusionObjective final : public Objective {
 public:
  /// See Kind::make_objective().
  DiffusionObjective(const Recipe& recipe, nn::Recompute recompute, Device device,
                     const nn::NetworkLayout& layout);

  const models::DiffusionNetwork& network() const { return *network_; }
  /// The CUDA graphs of passes whose batch shapes repeat; empty on a CPU.
  const GraphCache& graphs() const { return graphs_; }

  const nn::ParameterList& parameters() const override;
  const nn::ParameterList& frozen() const override;
  Device device() const override { return network_->device(); }
  Json config() const override;
  std::unique_ptr<Batch> build(std::uint32_t step, std::size_t of_step,
                               const std::vector<PlacedSample>& samples) const override;
  std::unique_ptr<Batch> blank(const std::vector<data::Entry>& samples) const override;
  void pass(Batch& batch, bool first, const ops::Tape::Listener& final) const override;
  std::unique_ptr<ChunkedPass> pass_in_chunks(Batch& batch,
                                              const ops::Tape::Listener& final = {}) const override;
  LossSums loss(const Batch& batch) const override;
  /// One level for each of the recipe's validation.sigmas.
  std::vector<std::string> levels() const override;
  LossSums validate(std::size_t level, const std::vector<CleanSample>& samples) const override;

 private:
  struct Pack;
  StagedBatch staged(const NoisyBatch& batch, double loss_scale, Loss& loss) const;
  NoisyBatch own_part(const NoisyBatch& batch) const;
  LossSums sums_of(const Loss& loss, const NoisyBatch& batch) const;
  static void send(const CleanBatch& made, Pack& pack);

  const Recipe& recipe_;
  const nn::NetworkLayout layout_;
  std::unique_ptr<models::DiffusionNetwork> network_;
  mutable GraphCache graphs_;  // used by the thread that passes batches
};

}  // namespace vfm::train

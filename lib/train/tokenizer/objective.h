// The objective of training a video tokenizer. An autoencoder (models/cosmos/autoencoder.h)
// reconstructs pixels from its latents or codes; the loss is the error of pixels
// (ops/loss/pixel_error.h). Codes pass gradients as if they were not rounded (ops/pointwise/fsq.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "models/cosmos/autoencoder.h"
#include "train/step/objective.h"

namespace vfm::train {

class TokenizerObjective final : public Objective {
 public:
  /// See Kind::make_objective().
  TokenizerObjective(const Recipe& recipe, nn::Recompute recompute, Device device);

  const nn::ParameterList& parameters() const override { return model_.parameters(); }
  Device device() const override { return model_.device(); }
  Json config() const override;
  /// The sums of the loss are over values of pixels. Clips pass one by one, so memory is needed for
  /// one.
  std::unique_ptr<Batch> build(std::uint32_t step, std::size_t of_step,
                               const std::vector<PlacedSample>& samples) const override;
  std::unique_ptr<Batch> blank(const std::vector<data::Entry>& samples) const override;
  void pass(Batch& batch, bool first, const ops::Tape::Listener& final) const override;
  LossSums loss(const Batch& batch) const override;
  std::vector<std::string> levels() const override { return {""}; }
  /// The sums have also the PSNR and the SSIM of each clip.
  LossSums validate(std::size_t level, const std::vector<CleanSample>& samples) const override;
  bool reconstructs() const override { return true; }
  std::vector<float> reconstruct(const CleanSample& sample) const override;

 private:
  struct Clips;
  Tensor decoded(ops::Tape& tape, const Tensor& pixels) const;

  const Recipe& recipe_;
  models::CosmosAutoencoder model_;
};

}  // namespace vfm::train

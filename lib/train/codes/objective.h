// Autoregressive training as an objective: a decoder of discrete latents
// (models/decoder/decoder.h), which predicts every code from those before it, and the cross-entropy
// with a z-loss.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "models/decoder/decoder.h"
#include "train/objective.h"

namespace vfm::train {

class CodeObjective final : public Objective {
 public:
  /// As Kind::make_objective() says.
  CodeObjective(const Recipe& recipe, models::Recompute recompute, Device device);

  const nn::ParameterList& parameters() const override { return decoder_.parameters(); }
  Device device() const override { return decoder_.device(); }
  Json config() const override;
  /// The sums are over codes: divided by their number they are nats a code.
  std::unique_ptr<Batch> build(std::uint32_t step, std::span<const std::string> keys,
                               const std::vector<PlacedSample>& samples) const override;
  std::unique_ptr<Batch> blank(const std::vector<data::Entry>& samples) const override;
  void pass(Batch& batch) const override;
  LossSums loss(const Batch& batch) const override;
  std::vector<std::string> levels() const override { return {""}; }
  LossSums validate(std::size_t level, const std::vector<CleanSample>& samples) const override;

 private:
  struct Pack;
  void add(Pack& pack, const CleanSample& sample, bool without_text) const;
  void compute(Pack& pack, double scale) const;

  const Recipe& recipe_;
  models::CausalDecoder decoder_;
};

}  // namespace vfm::train

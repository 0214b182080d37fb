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
  /// As make_objective() says.
  CodeObjective(const Recipe& recipe, models::Recompute recompute, Device device);

  const nn::ParameterList& parameters() const override { return decoder_.parameters(); }
  Device device() const override { return decoder_.device(); }
  Json config() const override;
  /// The sums are over codes: divided by their number they are nats a code.
  BatchPass build(std::uint32_t step, std::span<const std::string> keys,
                  const std::vector<PlacedSample>& samples) const override;
  std::vector<std::string> levels() const override { return {""}; }
  BatchPass build_validation(std::size_t level,
                             const std::vector<CleanSample>& samples) const override;

 private:
  struct Batch;
  void add(Batch& batch, const CleanSample& sample, bool without_text) const;
  LossReader pass(const Batch& batch, double scale) const;

  const Recipe& recipe_;
  models::CausalDecoder decoder_;
};

}  // namespace vfm::train

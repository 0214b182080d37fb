// SPDX-License-Identifier: Apache-2.0
#include "train/diffusion_objective.h"

#include <utility>

#include "base/error.h"
#include "models/dit_json.h"

namespace vfm::train {

DiffusionObjective::DiffusionObjective(const Recipe& recipe, models::Recompute recompute,
                                       Device device)
    : recipe_(recipe),
      network_(
          models::make_network(recipe.model.dit, recipe.train.seed, recipe.compute(), device)) {
  network_->set_recompute(recompute);
}

Json DiffusionObjective::config() const {
  return models::dit_config_to_json(network_->config());
}

BatchPass DiffusionObjective::build(std::uint32_t step, std::span<const std::string> keys,
                                    const std::vector<PlacedSample>& samples) const {
  const DiffusionRecipe& diffusion = recipe_.diffusion;
  const std::uint64_t seed = recipe_.train.seed;
  const std::vector<double> sigmas = draw_sigmas(diffusion, seed, step, keys);
  BatchBuilder builder(network_->config());
  for (const auto& [sample, place] : samples)
    builder.add(sample, sample_sigma(diffusion, sigmas[place], sample.frames),
                drop_text(diffusion, seed, step, sample.key),
                Random(seed, Purpose::noise, step, random_key(sample.key)));
  return [this, made = builder.build()]() -> LossReader {
    const NoisyBatch batch = made.to(device());
    ops::Tape tape;
    const Tensor output = network_->forward(tape, batch.input);
    Loss loss = diffusion_loss(output, batch, recipe_.diffusion.loss_scale);
    tape.backward(output, std::exchange(loss.error.seed, Tensor()));
    return [loss, made] { return loss.sums(made); };
  };
}

std::vector<std::string> DiffusionObjective::levels() const {
  std::vector<std::string> names;
  for (const double sigma : recipe_.validation.sigmas)
    names.push_back(fmt::format("{}", sigma));
  return names;
}

BatchPass DiffusionObjective::build_validation(std::size_t level,
                                               const std::vector<CleanSample>& samples) const {
  BatchBuilder builder(network_->config());
  // Seed 0 and the level's number instead of the run's seed and step: the same noise for everyone.
  for (const CleanSample& sample : samples)
    builder.add(
        sample, recipe_.validation.sigmas[level], false,
        Random(0, Purpose::validation, static_cast<std::uint32_t>(level), random_key(sample.key)));
  return [this, made = builder.build()]() -> LossReader {
    const NoisyBatch batch = made.to(device());
    ops::Tape tape(false);
    const Loss loss = diffusion_loss(network_->forward(tape, batch.input), batch, 0);
    return [loss, made] { return loss.sums(made); };
  };
}

}  // namespace vfm::train

// SPDX-License-Identifier: Apache-2.0
#include "train/diffusion/objective.h"

#include <limits>
#include <utility>

#include "base/error.h"
#include "models/dit/network_json.h"
#include "tensor/upload.h"
#include "train/text_dropout.h"

namespace vfm::train {
namespace {

constexpr int kMostGraphs = 8;

/// All that the host's part of a pass depends on.
std::string shape_of(const NoisyBatch& batch) {
  std::string shape;
  for (std::size_t i = 0; i < batch.parts.size(); ++i) {
    const models::NetworkSample& s = batch.input.samples[i];
    shape +=
        fmt::format("{}x{}x{} {} fps {} texts {} {} given;", s.frames, s.height, s.width, s.fps,
                    s.text_tokens, fmt::join(s.position_step, ","), batch.parts[i].given);
  }
  return shape;
}

}  // namespace

DiffusionObjective::DiffusionObjective(const Recipe& recipe, models::Recompute recompute,
                                       Device device)
    : recipe_(recipe),
      network_(models::make_network(recipe.model.dit, recipe.train.seed, recipe.compute(), device,
                                    recipe.lora.rank == 0)),
      graphs_(device == Device::cuda ? kMostGraphs : 0) {
  network_->set_recompute(recompute);
  if (recipe.lora.rank > 0)
    network_->attach(models::lora_shapes(recipe.model.dit, recipe.lora), true);
}

const nn::ParameterList& DiffusionObjective::parameters() const {
  return recipe_.lora.rank > 0 ? network_->adapters() : network_->parameters();
}

const nn::ParameterList& DiffusionObjective::frozen() const {
  return recipe_.lora.rank > 0 ? network_->parameters() : Objective::frozen();
}

Json DiffusionObjective::config() const {
  return models::network_config_to_json(network_->config());
}

BatchPass DiffusionObjective::build(std::uint32_t step, std::span<const std::string> keys,
                                    const std::vector<PlacedSample>& samples) const {
  const DiffusionRecipe& diffusion = recipe_.diffusion;
  const std::uint64_t seed = recipe_.train.seed;
  const std::vector<double> sigmas = draw_sigmas(diffusion, seed, step, keys);
  BatchBuilder builder(network_->config(), diffusion.text_padding);
  for (const auto& [sample, place] : samples) {
    const std::uint64_t key = random_key(sample.key);
    builder.add(
        sample, sample_sigma(diffusion, sigmas[place], sample.frames),
        drop_text(diffusion.text_dropout, seed, step, sample.key),
        Random(seed, Purpose::noise, step, key),
        draw_condition(diffusion, Random(seed, Purpose::condition, step, key), sample.frames));
  }
  if (device() == Device::cuda) return pass_on_gpu(builder.build_clean());
  return [this, made = builder.build()]() -> LossReader {
    return [loss = pass(made), made] { return loss.sums(made); };
  };
}

/// Forward, loss and backward. `batch` is on device().
Loss DiffusionObjective::pass(const NoisyBatch& batch) const {
  ops::Tape tape;
  const Tensor output = network_->forward(tape, batch.input);
  Loss loss = diffusion_loss(output, batch, recipe_.diffusion.loss_scale);
  tape.backward(output, std::exchange(loss.error.seed, Tensor()));
  return loss;
}

/// The samples go to the GPU now, while that is at the step before; noise comes to them there.
BatchPass DiffusionObjective::pass_on_gpu(const CleanBatch& made) const {
  Upload upload;
  CleanBatch there = made;
  models::NetworkBatch& input = there.batch.input;
  input.latents = upload.copy(input.latents);
  input.text = upload.copy(input.text);
  input.c_noise = upload.copy(input.noise_levels(Device::cpu));
  // Nothing on the host may depend on it, or a graph would keep it.
  for (models::NetworkSample& sample : input.samples)
    sample.c_noise = std::numeric_limits<float>::quiet_NaN();
  return [this, there, upload]() -> LossReader {
    upload.await();
    const NoisyBatch noisy = add_noise(there);
    const auto work = [&](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
      NoisyBatch batch = noisy;
      batch.input.latents = inputs[0];
      batch.input.text = inputs[1];
      batch.input.c_noise = inputs[2];
      batch.target = inputs[3];
      return {pass(batch).error.sums};
    };
    const auto& [samples, latents, text, c_noise] = noisy.input;
    Loss loss;
    loss.error.sums = graphs_.run(shape_of(noisy), {latents, text, c_noise, noisy.target}, work)[0];
    return [loss, batch = there.batch] { return loss.sums(batch); };
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
  BatchBuilder builder(network_->config(), recipe_.diffusion.text_padding);
  // Seed 0 and the level's number instead of the run's seed and step: the same noise for everyone;
  // and the same frames are given at all levels.
  for (const CleanSample& sample : samples) {
    const std::uint64_t key = random_key(sample.key);
    builder.add(
        sample, recipe_.validation.sigmas[level], false,
        Random(0, Purpose::validation, static_cast<std::uint32_t>(level), key),
        draw_condition(recipe_.diffusion, Random(0, Purpose::condition, 0, key), sample.frames));
  }
  return [this, made = builder.build()]() -> LossReader {
    const NoisyBatch batch = made.to(device());
    ops::Tape tape(false);
    const Loss loss = diffusion_loss(network_->forward(tape, batch.input), batch, 0);
    return [loss, made] { return loss.sums(made); };
  };
}

}  // namespace vfm::train

// SPDX-License-Identifier: Apache-2.0
#include "train/diffusion/objective.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "models/dit/network_json.h"
#include "tensor/meta.h"
#include "tensor/upload.h"
#include "train/kind.h"

namespace vfm::train {
namespace {

constexpr int kMostGraphs = 16;  // of eight shapes, each also as the first of a step

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

/// On the CPU noisy already; on a GPU the clean samples, on their way there or there.
struct DiffusionObjective::Pack final : Batch {
  NoisyBatch noisy;
  CleanBatch clean;
  std::optional<Upload> upload;
  Loss loss;
};

DiffusionObjective::DiffusionObjective(const Recipe& recipe, nn::Recompute recompute, Device device,
                                       const nn::NetworkLayout& layout)
    : recipe_(recipe),
      layout_(layout),
      network_(models::make_network(recipe.model.dit, recipe.train.seed, recipe.compute(), device,
                                    recipe.lora.rank == 0, layout)),
      graphs_(device == Device::cuda && may_be_graphs(recipe.model, recompute,
                                                      !layout.alone() || layout.pp_size() > 1 ||
                                                          layout.blocks != nullptr)
                  ? kMostGraphs
                  : 0) {
  network_->set_recompute(recompute, recipe.model.offload);
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

std::unique_ptr<Batch> DiffusionObjective::build(std::uint32_t step, std::size_t of_step,
                                                 const std::vector<PlacedSample>& samples) const {
  const DiffusionRecipe& diffusion = recipe_.diffusion;
  const std::uint64_t seed = recipe_.train.seed;
  const StepLevels levels(diffusion, seed, step, of_step);
  BatchBuilder builder(network_->config(), diffusion.text_padding, diffusion.process);
  for (const auto& [sample, place, again] : samples) {
    const std::string name = random_name(sample.key, again);
    const std::uint64_t key = random_key(name);
    builder.add(
        sample, sample_level(diffusion, levels.at(place, name), sample.frames),
        drop_text(diffusion.text_dropout, seed, step, name),
        Random(seed, Purpose::noise, step, key),
        draw_condition(diffusion, Random(seed, Purpose::condition, step, key), sample.frames));
  }
  auto pack = std::make_unique<Pack>();
  if (device() == Device::cuda)
    send(builder.build_clean(), *pack);
  else
    pack->noisy = builder.build();
  return pack;
}

/// The samples go to the GPU now, while that is at the step before; noise comes to them there.
void DiffusionObjective::send(const CleanBatch& made, Pack& pack) {
  Upload& upload = pack.upload.emplace();
  pack.clean = made;
  models::NetworkBatch& input = pack.clean.batch.input;
  input.latents = upload.copy(input.latents);
  input.text = upload.copy(input.text);
  input.c_noise = upload.copy(input.noise_levels(Device::cpu));
  // Nothing on the host may depend on it, or a graph would keep it.
  for (models::NetworkSample& sample : input.samples)
    sample.c_noise = std::numeric_limits<float>::quiet_NaN();
}

std::unique_ptr<Batch> DiffusionObjective::blank(const std::vector<data::Entry>& samples) const {
  const models::NetworkConfig& config = network_->config();
  auto pack = std::make_unique<Pack>();
  NoisyBatch& batch = pack->clean.batch;
  std::int64_t values = 0, text_rows = 0;
  for (const data::Entry& entry : samples) {
    const int texts = recipe_.text_tokens(entry.text_tokens);
    batch.input.samples.push_back(
        {entry.frames, entry.height, entry.width, static_cast<float>(entry.fps), 0, texts});
    const std::int64_t places = std::int64_t{entry.frames} * entry.height * entry.width;
    ops::NoisySample& noisy = pack->clean.noise.emplace_back();
    noisy.count = places * config.out_channels;
    noisy.channel = config.video_to_world() ? places : 0;
    batch.parts.push_back({noisy.count, noisy.channel, 0});
    values += noisy.count;
    text_rows += texts;
  }
  batch.input.latents = Tensor({values}, DType::f32, device());
  batch.input.text = Tensor({text_rows, config.text_embed_dim}, DType::f32, device());
  if (layout_device(device()) == Device::cpu) {
    pack->noisy = add_noise(pack->clean);
    pack->clean = {};
  }
  return pack;
}

void DiffusionObjective::pass(Batch& batch, bool first, const ops::Tape::Listener& final) const {
  auto& pack = dynamic_cast<Pack&>(batch);
  const auto learn = [&](const NoisyBatch& noisy) {
    ops::Tape tape;
    if (first) tape.replace_gradients();
    if (!graphs_.records()) tape.listen(final);
    const Tensor output = network_->forward(tape, noisy.input);
    Loss loss = diffusion_loss(output, own_part(noisy), recipe_.diffusion.loss_scale);
    tape.backward(output, std::exchange(loss.error.seed, Tensor()));
    return loss;
  };
  if (!pack.upload) {
    // A blank one of a GPU comes without noise.
    const bool noisy = pack.clean.batch.input.samples.empty();
    pack.loss = noisy ? learn(pack.noisy) : learn(add_noise(pack.clean));
    return;
  }
  pack.upload->await();
  const NoisyBatch noisy = add_noise(pack.clean);
  const auto work = [&](const std::vector<Tensor>& inputs) -> std::vector<Tensor> {
    NoisyBatch copy = noisy;
    copy.input.latents = inputs[0];
    copy.input.text = inputs[1];
    copy.input.c_noise = inputs[2];
    copy.target = inputs[3];
    return {learn(copy).error.sums};
  };
  const models::NetworkBatch& input = noisy.input;
  pack.loss.error.sums =
      graphs_.run(shape_of(noisy) + (first ? " first" : ""),
                  {input.latents, input.text, input.c_noise, noisy.target}, work)[0];
}

/// Of a batch that it keeps; `loss` gets what there is of it.
StagedBatch DiffusionObjective::staged(const NoisyBatch& batch, double loss_scale,
                                       Loss& loss) const {
  const auto kept = std::make_shared<const NoisyBatch>(batch);
  return {.stages = [this, kept](ops::Tape& tape) { return network_->stages(tape, kept->input); },
          .loss =
              [this, kept, loss_scale, &loss](const Tensor& output) {
                loss = diffusion_loss(output, own_part(*kept), loss_scale);
                return std::exchange(loss.error.seed, Tensor());
              },
          .streams = [this, kept](
                         std::size_t block) { return network_->stream_shapes(kept->input, block); },
          .device = device(),
          .blocks = network_->config().num_layers};
}

std::unique_ptr<ChunkedPass> DiffusionObjective::pass_in_chunks(
    Batch& batch, const ops::Tape::Listener& final) const {
  auto& pack = dynamic_cast<Pack&>(batch);
  if (pack.upload) pack.upload->await();
  const bool noisy = pack.clean.batch.input.samples.empty();
  return std::make_unique<NetworkChunks>(
      layout_,
      staged(noisy ? pack.noisy : add_noise(pack.clean), recipe_.diffusion.loss_scale, pack.loss),
      true, final);
}

/// With zeros in the target where tokens are other ranks', as in the output: there is no error.
NoisyBatch DiffusionObjective::own_part(const NoisyBatch& batch) const {
  NoisyBatch own = batch;
  own.target = network_->own_part(batch.target, batch.input);
  return own;
}

/// Each rank has the errors of its own tokens; the first one counts the elements.
LossSums DiffusionObjective::sums_of(const Loss& loss, const NoisyBatch& batch) const {
  if (!layout_.last_stage()) return {};
  LossSums sums = loss.sums(batch);
  if (!layout_.first()) sums.image_elements = sums.video_elements = 0;
  return sums;
}

LossSums DiffusionObjective::loss(const Batch& batch) const {
  const auto& pack = dynamic_cast<const Pack&>(batch);
  return sums_of(pack.loss, pack.upload ? pack.clean.batch : pack.noisy);
}

std::vector<std::string> DiffusionObjective::levels() const {
  std::vector<std::string> names;
  for (const double sigma : recipe_.validation.sigmas)
    names.push_back(fmt::format("{}", sigma));
  return names;
}

LossSums DiffusionObjective::validate(std::size_t level,
                                      const std::vector<CleanSample>& samples) const {
  BatchBuilder builder(network_->config(), recipe_.diffusion.text_padding,
                       recipe_.diffusion.process);
  // Seed 0 and the level's number instead of the run's seed and step: the same noise for everyone;
  // and the same frames are given at all levels.
  for (const CleanSample& sample : samples) {
    const std::uint64_t key = random_key(sample.key);
    builder.add(
        sample, recipe_.validation.sigmas[level], false,
        Random(0, Purpose::validation, static_cast<std::uint32_t>(level), key),
        draw_condition(recipe_.diffusion, Random(0, Purpose::condition, 0, key), sample.frames));
  }
  const NoisyBatch batch = builder.build().to(device());
  if (layout_.pp_size() > 1) {
    Loss loss;
    NetworkChunks(layout_, staged(batch, 0, loss), false).forward_alone();
    return sums_of(loss, batch);
  }
  ops::Tape tape(false);
  const Tensor output = network_->forward(tape, batch.input);
  return sums_of(diffusion_loss(output, own_part(batch), 0), batch);
}

}  // namespace vfm::train

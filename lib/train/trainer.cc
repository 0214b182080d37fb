// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "tensor/device.h"
#include "train/kind.h"
#include "train/memory.h"
#include "train/recipe_file.h"
#include "train/schedule.h"

namespace vfm::train {
namespace {

/// Sums gradients over ranks.
void reduce_gradients(dist::World& world, const nn::ParameterList& parameters) {
  std::vector<Tensor> gradients;
  for (const nn::Parameter* parameter : parameters)
    gradients.push_back(parameter->grad);
  world.all_reduce_sum(std::span<const Tensor>(gradients));
}

/// Sums over ranks of what each knows alone.
void reduce_result(dist::World& world, StepResult& result) {
  std::array<double, 6> sums = {result.loss.image_sum,        result.loss.image_elements,
                                result.loss.video_sum,        result.loss.video_elements,
                                stop_signal() != 0 ? 1.0 : 0, wind_up_requested() ? 1.0 : 0};
  world.all_reduce_sum(std::span<double>(sums));
  result.loss = {.image_sum = sums[0],
                 .image_elements = sums[1],
                 .video_sum = sums[2],
                 .video_elements = sums[3]};
  result.stop = sums[4] > 0;
  result.wind_up = sums[5] > 0;
}

}  // namespace

Json RunState::to_json() const {
  return {{"step", step},     {"updates", updates}, {"skips_in_row", skips_in_row},
          {"tokens", tokens}, {"samples", samples}, {"epoch", data.epoch},
          {"pack", data.pack}};
}

RunState RunState::from_json(const Json& value, std::string_view what) {
  RunState state;
  state.step = need_integer(value, "step", what);
  state.updates = need_integer(value, "updates", what);
  state.skips_in_row = need_integer(value, "skips_in_row", what);
  state.tokens = need_integer(value, "tokens", what);
  state.samples = need_integer(value, "samples", what);
  state.data.epoch = static_cast<std::uint32_t>(need_integer(value, "epoch", what));
  state.data.pack = static_cast<std::uint64_t>(need_integer(value, "pack", what));
  return state;
}

Trainer::Trainer(const Recipe& recipe, const Dataset& data, dist::World& world, Device device)
    : recipe_(recipe),
      data_(data),
      world_(world),
      recompute_(choose_recompute(recipe, world.size(), device,
                                  usable_memory(device, world.local_size()),
                                  fullest_pack(recipe, data))),
      objective_(kind_of(recipe.model.type).make_objective(recipe, recompute_, device)),
      optimizer_(recipe.optimizer, recipe.ema, objective_->parameters()),
      order_(data.tokens(recipe.model), recipe.train.seed, recipe.data.pack_options()),
      flops_(recipe) {}

Trainer::~Trainer() = default;

StepResult Trainer::train_step() {
  StepResult result;
  const auto begin = std::chrono::steady_clock::now();
  const StepData data = take_data();
  result.data_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.flops = data.flops;

  if (data.batches.empty()) nn::zero_gradients(objective_->parameters());
  for (const std::unique_ptr<Batch>& batch : data.batches)
    objective_->pass(*batch, batch == data.batches.front());
  for (const std::unique_ptr<Batch>& batch : data.batches)
    result.loss += objective_->loss(*batch);
  reduce_gradients(world_, objective_->parameters());
  reduce_result(world_, result);
  if (result.loss.elements() == 0)
    fail("none of the samples of step {} could be read", state_.step + 1);

  result.learning_rate =
      learning_rate(recipe_.optimizer, recipe_.schedule, state_.step, recipe_.train.steps);
  // What is not finite in the loss is not finite in the gradient either.
  result.gradient_norm = optimizer_.update(result.learning_rate, 1 / result.loss.elements());
  result.skipped = !std::isfinite(result.gradient_norm);

  ++state_.step;
  state_.updates = optimizer_.updates;
  state_.skips_in_row = result.skipped ? state_.skips_in_row + 1 : 0;
  state_.tokens += data.tokens;
  state_.samples += data.samples;
  state_.data = data.after;
  if (state_.skips_in_row > recipe_.optimizer.max_skips)
    fail(
        "the gradient was not finite in {} steps in a row, up to step {}: {}, start over with a "
        "lower one; the last checkpoint is from before these steps",
        state_.skips_in_row, state_.step, describe_setting(recipe_, "optimizer.lr"));
  return result;
}

void Trainer::restore(const RunState& state) {
  if (ahead_.valid()) ahead_.get();
  state_ = state;
  optimizer_.updates = state.updates;
  order_.seek(state.data);
}

/// The data of this step; and begins to prepare the next step's while this one is computed.
Trainer::StepData Trainer::take_data() {
  const auto step = static_cast<std::uint32_t>(state_.step);
  StepData data = ahead_.valid() ? ahead_.get() : prepare(step);
  for (const auto& [key, message] : data.failures)
    if (failures_.emplace(key, message).second) log_warning("left out: {}", message);
  ahead_ = std::async(std::launch::async, [this, step] { return prepare(step + 1); });
  return data;
}

Trainer::StepData Trainer::prepare(std::uint32_t step) {
  StepData data;
  std::vector<data::Pack> packs;
  std::vector<std::string> keys;
  for (int i = 0; i < recipe_.data.packs; ++i) {
    for (const std::size_t sample : packs.emplace_back(order_.next())) {
      const data::Entry& entry = data_.entry(sample);
      keys.push_back(entry.key);
      data.tokens += token_count(entry, recipe_.model);
      data.flops += flops_.of(entry);
    }
  }
  data.samples = static_cast<std::int64_t>(keys.size());
  data.after = order_.position();

  std::vector<PlacedSample> samples;  // of one forward
  int packs_in_forward = 0;
  std::size_t place = 0;  // in the order of the whole step
  const auto finish_batch = [&] {
    if (!samples.empty()) data.batches.push_back(objective_->build(step, keys, samples));
    samples.clear();
    packs_in_forward = 0;
  };
  for (std::size_t p = 0; p < packs.size(); place += packs[p++].size()) {
    if (static_cast<int>(p) % world_.size() != world_.rank()) continue;
    for (std::size_t i = 0; i < packs[p].size(); ++i) {
      try {
        samples.push_back({data_.read(packs[p][i], step), place + i});
      } catch (const Error& error) {
        data.failures.emplace_back(keys[place + i], error.what());
      }
    }
    if (++packs_in_forward == recipe_.data.micro_packs) finish_batch();
  }
  finish_batch();
  return data;
}

}  // namespace vfm::train

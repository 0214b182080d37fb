// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "tensor/device.h"
#include "train/kind.h"
#include "train/memory.h"
#include "train/pipeline.h"
#include "train/recipe_file.h"
#include "train/schedule.h"

namespace vfm::train {
namespace {

/// Sums over ranks of what each knows alone.
void reduce_result(dist::World& world, StepResult& result) {
  std::array<double, 7> sums = {result.loss.image_sum,        result.loss.image_elements,
                                result.loss.video_sum,        result.loss.video_elements,
                                stop_signal() != 0 ? 1.0 : 0, wind_up_requested() ? 1.0 : 0,
                                result.own_read_bytes};
  world.all_reduce_sum(std::span<double>(sums));
  result.loss = {.image_sum = sums[0],
                 .image_elements = sums[1],
                 .video_sum = sums[2],
                 .video_elements = sums[3]};
  result.stop = sums[4] > 0;
  result.wind_up = sums[5] > 0;
  result.read_bytes = sums[6];
}

/// What all ranks have memory for: backward repeats the exchanges of what it computes again, so
/// they do alike.
models::Recompute most_recompute(dist::World& world, models::Recompute own) {
  std::array<double, 4> chosen{};
  chosen.at(static_cast<std::size_t>(own)) = 1;
  world.all_reduce_sum(std::span<double>(chosen));
  for (std::size_t i = chosen.size(); i-- > 0;)
    if (chosen[i] > 0) return static_cast<models::Recompute>(i);
  return own;
}

}  // namespace

Json RunState::to_json() const {
  return {{"step", step},        {"updates", updates}, {"skips_in_row", skips_in_row},
          {"tokens", tokens},    {"samples", samples}, {"epoch", data.epoch},
          {"block", data.block}, {"pack", data.pack}};
}

RunState RunState::from_json(const Json& value, std::string_view what) {
  RunState state;
  state.step = need_integer(value, "step", what);
  state.updates = need_integer(value, "updates", what);
  state.skips_in_row = need_integer(value, "skips_in_row", what);
  state.tokens = need_integer(value, "tokens", what);
  state.samples = need_integer(value, "samples", what);
  state.data.epoch = static_cast<std::uint32_t>(need_integer(value, "epoch", what));
  state.data.block = static_cast<std::uint64_t>(get_integer(value, "block").value_or(0));
  state.data.pack = static_cast<std::uint64_t>(need_integer(value, "pack", what));
  return state;
}

Trainer::Trainer(const Recipe& recipe, const Dataset& data, dist::World& world, Device device)
    : recipe_(recipe),
      data_(data),
      parallel_(recipe, world),
      recompute_(most_recompute(world, choose_recompute(recipe, world.size(), device,
                                                        usable_memory(device, world.local_size()),
                                                        fullest_pack(recipe, data)))),
      objective_(kind_of(recipe.model.type)
                     .make_objective(recipe, recompute_, device, parallel_.network())),
      shards_(parallel_.mesh(), objective_->parameters(), parallel_.blocks()),
      reducer_(parallel_.mesh(), objective_->parameters(), recipe.parallel.reduce_type()),
      optimizer_(recipe.optimizer, recipe.ema, shards_.states()),
      order_(data.size(), data.lengths(recipe.model), recipe.train.seed,
             recipe.data.pack_options()),
      flops_(recipe) {
  shards_.gather();
}

Trainer::~Trainer() = default;

StepResult Trainer::train_step(bool update) {
  StepResult result;
  const auto begin = std::chrono::steady_clock::now();
  const StepData data = take_data();
  result.data_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.flops = data.flops;
  result.own_read_bytes = data.read_bytes;

  pass(data);
  reducer_.finish();
  for (const std::unique_ptr<Batch>& batch : data.batches)
    if (batch) result.loss += objective_->loss(*batch);
  reduce_result(parallel_.world(), result);
  if (result.loss.elements() == 0)
    fail("none of the samples of step {} could be read", state_.step + 1);
  if (!update) return result;

  result.learning_rate = learning_rate(recipe_.optimizer, recipe_.schedule,
                                       state_.step - state_.first_step, recipe_.train.steps);
  // What is not finite in the loss is not finite in the gradient either.
  result.gradient_norm =
      optimizer_.update(result.learning_rate, 1 / result.loss.elements(), shards_.squares());
  result.skipped = !std::isfinite(result.gradient_norm);
  if (!result.skipped) shards_.gather();

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

/// Forward, loss and backward of all batches.
void Trainer::pass(const StepData& data) {
  const bool staged = parallel_.network().pp_size() > 1;
  nn::BlockShards* const blocks = parallel_.blocks();
  if (data.batches.empty() || staged) nn::zero_gradients(objective_->parameters());
  if (staged) {
    if (blocks != nullptr) blocks->gather_all(true);
    if (!data.batches.empty())
      run_pipeline(parallel_.mesh(), *objective_, data.batches, data.schedule,
                   {blocks, reducer_.listener()});
  } else {
    for (const std::unique_ptr<Batch>& batch : data.batches)
      objective_->pass(*batch, batch == data.batches.front(),
                       batch == data.batches.back() ? reducer_.listener() : ops::Tape::Listener());
  }
  if (blocks != nullptr) {
    const RankPacks packs = packs_of_rank(recipe_, parallel_.world().size());
    blocks->fill(static_cast<int>(data.batches.size()), packs.passes());
    blocks->finish();
  }
}

void Trainer::restore(const RunState& state) {
  if (built_.valid()) built_.get();
  if (read_.valid()) read_.get();
  shards_.gather();
  state_ = state;
  optimizer_.updates = state.updates;
  order_.seek(state.data);
}

void Trainer::swap_ema() {
  if (!optimizer_.has_ema()) return;
  optimizer_.swap_ema();
  shards_.gather();
}

/// The data of this step; and begins to prepare the next step's while this one is computed. Where
/// samples are shared, which is for this thread, those of the step after it are read meanwhile.
Trainer::StepData Trainer::take_data() {
  const auto step = static_cast<std::uint32_t>(state_.step);
  dist::Group& sharers = parallel_.sharers();
  StepData data = built_.valid() ? built_.get() : build(share(plan_and_read(step)));
  for (const auto& [key, message] : data.failures)
    if (failures_.emplace(key, message).second && sharers.rank() == 0)
      log_warning("left out: {}", message);
  if (sharers.size() == 1) {
    built_ = std::async(std::launch::async, [this, step] { return build(plan(step + 1)); });
    return data;
  }
  StepPlan read = read_.valid() ? read_.get() : plan_and_read(step + 1);
  const auto next = std::make_shared<StepPlan>(share(std::move(read)));
  built_ = std::async(std::launch::async, [this, next] { return build(std::move(*next)); });
  read_ = std::async(std::launch::async, [this, step] { return plan_and_read(step + 2); });
  return data;
}

Trainer::StepPlan Trainer::plan(std::uint32_t step) {
  StepPlan result;
  result.step = step;
  StepData& data = result.data;
  std::size_t place = 0;  // in the order of the whole step
  for (int p = 0; p < recipe_.data.packs; ++p) {
    data::Pack pack = order_.next();
    const double before = data.flops;
    for (const std::size_t sample : pack) {
      const data::Entry entry = data_.sizes(sample);
      data.tokens += token_count(entry, recipe_.model);
      data.flops += flops_.of(entry);
    }
    const std::size_t first = std::exchange(place, place + pack.size());
    if (p % parallel_.data_ranks() == parallel_.data_rank())
      result.packs.push_back({first, std::move(pack), data.flops - before});
  }
  data.samples = static_cast<std::int64_t>(place);
  data.after = order_.position();
  return result;
}

/// And reads, where samples are shared, this rank's part of them.
Trainer::StepPlan Trainer::plan_and_read(std::uint32_t step) {
  StepPlan result = plan(step);
  const dist::Group& sharers = parallel_.sharers();
  if (sharers.size() == 1) return result;
  std::vector<std::size_t> samples;
  for (const StepPlan::Pack& pack : result.packs)
    samples.insert(samples.end(), pack.samples.begin(), pack.samples.end());
  result.own = read_own_part(data_, std::move(samples), step, sharers.rank(), sharers.size());
  return result;
}

/// A collective of those who share samples.
Trainer::StepPlan Trainer::share(StepPlan plan) const {
  if (parallel_.sharers().size() == 1) return plan;
  SharedSamples shared = share_samples(parallel_, data_, std::move(plan.own));
  plan.read = std::move(shared.samples);
  plan.data.read_bytes = static_cast<double>(shared.own_bytes);
  return plan;
}

Trainer::StepData Trainer::build(StepPlan plan) const {
  StepData data = std::move(plan.data);
  const auto of_step = static_cast<std::size_t>(data.samples);
  const bool shared = parallel_.sharers().size() > 1;
  std::vector<PlacedSample> samples;  // of one forward
  int packs_in_forward = 0;
  const int together = recipe_.packs_together();
  const bool staged = parallel_.network().pp_size() > 1;
  std::vector<MicrobatchCost> costs;  // of a pipeline
  double flops = 0;                   // of one forward
  const auto finish_batch = [&] {
    if (staged && packs_in_forward > 0) costs.push_back({flops / 3, flops * 2 / 3});
    if (!samples.empty())
      data.batches.push_back(objective_->build(plan.step, of_step, samples));
    else if (staged && packs_in_forward > 0)
      data.batches.push_back(nullptr);  // all stages have it in their schedule
    samples.clear();
    packs_in_forward = 0;
    flops = 0;
  };
  std::size_t next = 0;  // of plan.read
  for (const StepPlan::Pack& pack : plan.packs) {
    for (std::size_t i = 0; i < pack.samples.size(); ++i) {
      ReadSample one =
          shared ? std::move(plan.read[next++]) : try_to_read(data_, pack.samples[i], plan.step);
      if (!shared) data.read_bytes += static_cast<double>(one.sample.read_bytes);
      if (one.failure.empty())
        samples.push_back({std::move(one.sample), pack.place + i});
      else
        data.failures.emplace_back(one.sample.key, one.failure);
    }
    flops += pack.flops;
    if (++packs_in_forward == together) finish_batch();
  }
  finish_batch();
  if (!costs.empty())
    data.schedule = schedule_pipeline(
        {parallel_.network().pp_size(), recipe_.parallel.vpp, recipe_.parallel.ahead}, costs);
  return data;
}

}  // namespace vfm::train

// SPDX-License-Identifier: Apache-2.0
#include "train/step/trainer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <span>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/save_at_term.h"
#include "base/stop.h"
#include "tensor/device.h"
#include "train/cost/memory.h"
#include "train/data/skipped_samples.h"
#include "train/kind.h"
#include "train/recipe/recipe_file.h"
#include "train/state/replicas.h"
#include "train/step/schedule.h"

namespace vfm::train {
namespace {

/// Sums over ranks of what each knows alone, and the mean of `squares`, which is the same on all
/// unless one computes wrongly: afterwards all agree on it.
void reduce_result(dist::World& world, StepResult& result, double& squares) {
  std::array<double, 12> sums = {
      result.loss.image_sum,      result.loss.image_elements, result.loss.video_sum,
      result.loss.video_elements, stop_requested() ? 1.0 : 0, wind_up_requested() ? 1.0 : 0,
      result.own_read_bytes,      term_requested() ? 1.0 : 0, squares / world.size(),
      result.save.done,           result.save.failed,         result.save.due};
  world.all_reduce_sum(std::span<double>(sums));
  result.loss = {.image_sum = sums[0],
                 .image_elements = sums[1],
                 .video_sum = sums[2],
                 .video_elements = sums[3]};
  result.stop = sums[4] > 0;
  result.wind_up = sums[5] > 0;
  result.read_bytes = sums[6];
  result.term = sums[7] > 0;
  squares = sums[8];
  result.save = {.done = sums[9], .failed = sums[10], .due = sums[11]};
}

/// What all ranks have memory for: backward repeats the exchanges of what it computes again, so
/// they do alike.
nn::Recompute most_recompute(dist::World& world, nn::Recompute own) {
  std::array<double, 4> chosen{};
  chosen.at(static_cast<std::size_t>(own)) = 1;
  world.all_reduce_sum(std::span<double>(chosen));
  for (std::size_t i = chosen.size(); i-- > 0;)
    if (chosen[i] > 0) return static_cast<nn::Recompute>(i);
  return own;
}

}  // namespace

Json RunState::to_json() const {
  Json json = {{"step", step},        {"updates", updates}, {"skips_in_row", skips_in_row},
               {"tokens", tokens},    {"samples", samples}, {"epoch", data.epoch},
               {"block", data.block}, {"pack", data.pack}};
  if (!of_sources.empty()) json["folder_samples"] = of_sources;
  if (!other_updates.empty()) json["other_updates"] = other_updates;
  if (!recent.empty()) json["recent"] = recent.to_json();
  return json;
}

RunState RunState::from_json(const Json& value, std::string_view what) {
  RunState state;
  state.step = need_integer(value, "step", what);
  state.updates = need_integer(value, "updates", what);
  state.skips_in_row = need_integer(value, "skips_in_row", what);
  state.tokens = need_integer(value, "tokens", what);
  state.samples = need_integer(value, "samples", what);
  if (value.contains("folder_samples"))
    for (const Json& seen : value["folder_samples"]) {
      if (!seen.is_number_integer()) fail("'folder_samples' in {} must be whole numbers", what);
      state.of_sources.push_back(seen.get<std::int64_t>());
    }
  if (value.contains("other_updates"))
    for (const Json& updates : value["other_updates"]) {
      if (!updates.is_number_integer()) fail("'other_updates' in {} must be whole numbers", what);
      state.other_updates.push_back(updates.get<std::int64_t>());
    }
  if (value.contains("recent")) state.recent = RecentSteps::from_json(value["recent"], what);
  state.data.epoch = static_cast<std::uint32_t>(need_integer(value, "epoch", what));
  state.data.block = static_cast<std::uint64_t>(need_integer(value, "block", what));
  state.data.pack = static_cast<std::uint64_t>(need_integer(value, "pack", what));
  return state;
}

Trainer::Trainer(const Recipe& recipe, const Dataset& data, dist::World& world, Device device)
    : recipe_(recipe),
      data_(data),
      parallel_(recipe, world),
      recompute_(most_recompute(world, choose_recompute(recipe, world.size(), device,
                                                        memory_beside(recipe, data, device, world),
                                                        fullest_pack(recipe, data)))),
      step_(recipe, parallel_,
            kind_of(recipe.model.type)
                .make_objective(recipe, recompute_, device, parallel_.network()),
            recipe.ema),
      reader_(recipe, data, parallel_) {
  state_.of_sources.resize(data.sources().size());
  step_.gather();
  if (data.reads_on_gpu()) turn_ = take_turn(Device::cuda);
}

Trainer::~Trainer() {
  if (turn_.owns_lock()) turn_.unlock();  // what is still read may wait for it
}

StepResult Trainer::train_step(bool update) {
  StepResult result;
  const auto begin = std::chrono::steady_clock::now();
  const StepData data = wait_for_data();
  result.data_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.flops = data.plan.flops;
  result.own_read_bytes = data.read_bytes;
  result.save = own_notes_;

  step_.pass_all(data.batches, data.schedule,
                 packs_of_rank(recipe_, parallel_.world().size()).passes());
  step_.sum();
  for (const std::unique_ptr<Batch>& batch : data.batches)
    if (batch) result.loss += objective().loss(*batch);
  const double spike = recipe_.train.skip_spikes;
  double squares = spike > 0 && update ? step_.squares() : 0;
  reduce_result(parallel_.world(), result, squares);
  if (result.loss.elements() == 0)
    fail("none of the samples of step {} could be read", state_.step + 1);
  if (!update) return result;

  result.learning_rate = learning_rate(recipe_.optimizer, recipe_.schedule,
                                       state_.step - state_.first_step, recipe_.train.steps);
  // What is not finite in the loss is not finite in the gradient either.
  const double loss = result.loss.mean(), factor = 1 / result.loss.elements(),
               norm = std::sqrt(squares) * factor;
  result.spike = spike > 0 && state_.recent.is_spike(loss, norm, spike);
  if (result.spike) step_.skip();
  result.gradient_norm = result.spike ? norm : step_.update(result.learning_rate, factor);
  result.skipped = result.spike || !std::isfinite(result.gradient_norm);
  if (spike == 0) state_.recent = {};
  if (spike > 0 && !result.skipped) state_.recent.add(loss, norm);

  ++state_.step;
  state_.updates = step_.optimizer().updates;
  state_.other_updates.clear();
  for (std::size_t i = 1; i < step_.networks().size(); ++i)
    state_.other_updates.push_back(step_.networks()[i].optimizer.updates);
  state_.skips_in_row = result.skipped ? state_.skips_in_row + 1 : 0;
  state_.tokens += data.plan.tokens;
  state_.samples += data.plan.samples;
  for (std::size_t i = 0; i < state_.of_sources.size(); ++i)
    state_.of_sources[i] += data.plan.of_sources[i];
  state_.data = data.plan.after;
  if (state_.skips_in_row > recipe_.optimizer.max_skips)
    fail(
        "the gradient was {} in {} in a row, up to step {}: {}, start over with a lower one; the "
        "last checkpoint is from before these steps",
        result.spike ? "a spike, or not finite," : "not finite",
        counted(state_.skips_in_row, "step"), state_.step,
        describe_setting(recipe_, "optimizer.lr"));
  return result;
}

void Trainer::restore(const RunState& state) {
  const bool turn = turn_.owns_lock();
  if (turn) turn_.unlock();  // what is still read may wait for it
  if (built_.valid()) built_.get();
  reader_.seek(static_cast<std::uint32_t>(state.step), state.data,
               state.first_step + recipe_.train.steps);
  if (turn) turn_.lock();
  step_.gather();
  state_ = state;
  state_.of_sources.resize(data_.sources().size());
  step_.set_step(state.step);
  step_.optimizer().updates = state.updates;
  if (state.other_updates.size() + 1 != step_.networks().size())
    fail("a checkpoint of {} networks continues with {}", state.other_updates.size() + 1,
         step_.networks().size());
  for (std::size_t i = 1; i < step_.networks().size(); ++i)
    step_.networks()[i].optimizer.updates = state.other_updates[i - 1];
}

std::vector<OtherState> Trainer::other_states() const {
  std::vector<OtherState> others;
  for (std::size_t i = 1; i < step_.networks().size(); ++i)
    others.push_back({step_.networks()[i].name, step_.networks()[i].optimizer});
  return others;
}

void Trainer::compare_replicas() const {
  const std::vector<OtherNetwork> others = objective().others();
  std::vector<NetworkState> networks = {{&objective().frozen(), nullptr}};
  for (std::size_t i = 0; i < step_.networks().size(); ++i)
    networks.push_back({i == 0 ? &objective().parameters() : others[i - 1].parameters,
                        &step_.networks()[i].optimizer});
  train::compare_replicas(parallel_.mesh(), networks);
}

void Trainer::swap_ema() {
  if (!step_.optimizer().has_ema()) return;
  step_.optimizer().swap_ema();
  step_.shards().gather();
}

/// Where reading computes on the GPU, that is its turn.
Trainer::StepData Trainer::wait_for_data() {
  if (!turn_.owns_lock()) return take_data();
  turn_.unlock();
  StepData data = take_data();
  turn_.lock();
  return data;
}

/// The data of this step; and begins to build the next step's while this one is computed. What
/// ranks share is exchanged here, in this thread, as soon as it is read.
Trainer::StepData Trainer::take_data() {
  StepData data = built_.valid() ? built_.get() : build(read_step());
  for (const auto& [key, message] : data.failures)
    if (failures_.emplace(key, message).second && parallel_.sharers().rank() == 0)
      log_warning("left out: {}", message);
  if (state_.step + 1 >= state_.first_step + recipe_.train.steps) return data;
  const bool shared = parallel_.sharers().size() > 1;
  const auto next = std::make_shared<ReadStep>(shared ? read_step() : ReadStep());
  built_ = std::async(std::launch::async, [this, next, shared] {
    return build(shared ? std::move(*next) : read_step());
  });
  return data;
}

/// The next one. Where samples are shared a collective of those who share them.
Trainer::ReadStep Trainer::read_step() {
  ReadStep step{reader_.next(), {}};
  if (parallel_.sharers().size() > 1)
    step.shared = share_samples(parallel_, data_, reader_.take_own());
  return step;
}

Trainer::StepData Trainer::build(ReadStep step) {
  StepData data;
  data.plan = std::move(step.plan);
  const auto of_step = static_cast<std::size_t>(data.plan.samples);
  const bool shared = parallel_.sharers().size() > 1;
  data.read_bytes = static_cast<double>(step.shared.own_bytes);
  std::vector<PlacedSample> samples;  // of one forward
  int packs_in_forward = 0;
  const int together = recipe_.packs_together();
  const bool staged = parallel_.network().pp_size() > 1;
  std::vector<MicrobatchCost> costs;  // of a pipeline
  double flops = 0;                   // of one forward
  const auto finish_batch = [&] {
    if (staged && packs_in_forward > 0) costs.push_back({flops / 3, flops * 2 / 3});
    if (!samples.empty())
      data.batches.push_back(objective().build(data.plan.step, of_step, samples));
    else if (staged && packs_in_forward > 0)
      data.batches.push_back(nullptr);  // all stages have it in their schedule
    samples.clear();
    packs_in_forward = 0;
    flops = 0;
  };
  std::size_t next = 0;  // of those that are shared
  for (const StepPlan::Pack& pack : data.plan.packs) {
    for (std::size_t i = 0; i < pack.samples.size(); ++i) {
      ReadSample one = shared ? std::move(step.shared.samples[next++]) : reader_.take();
      if (!shared) data.read_bytes += static_cast<double>(one.sample.read_bytes);
      if (one.failure.empty())
        samples.push_back({std::move(one.sample), pack.place + i, pack.came_before(i)});
      else if (one.failure != kLeftOut)
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

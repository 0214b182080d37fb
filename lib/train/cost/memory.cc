// SPDX-License-Identifier: Apache-2.0
#include "train/cost/memory.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "data/packing.h"
#include "models/folder/lora_file.h"
#include "models/predict.h"
#include "tensor/device.h"
#include "tensor/meta.h"
#include "tensor/program_memory.h"
#include "train/checkpoint/checkpoint_contents.h"
#include "train/checkpoint/checkpoint_files.h"
#include "train/cost/host_memory.h"
#include "train/cost/less_memory.h"
#include "train/data/ahead_window.h"
#include "train/data/fetch_ahead.h"
#include "train/kind.h"
#include "train/recipe/recipe_file.h"
#include "train/step/training_step.h"

namespace vfm::train {

using nn::Recompute;

namespace {

/// What MPI has for itself: by measurement with Open MPI 4.1, 2 to 4 ranks in the memory of one
/// machine, 13 to 17 MiB. Of many ranks only some exchange messages with each other.
double memory_of_mpi(int ranks) {
  constexpr double kMebi = 1 << 20;
  constexpr int kMostPeers = 15;
  return ranks == 1 ? 0 : kMebi * (12 + 1.5 * std::min(ranks - 1, kMostPeers));
}

/// Of the whole model.
std::unique_ptr<Objective> on_meta(const Recipe& recipe, Recompute recompute) {
  return kind_of(recipe.model.type).make_objective(recipe, recompute, Device::meta, {});
}

/// Of a piece of a tensor on its way into a checkpoint (train/checkpoint/checkpoint_pieces.h): as
/// f32; and where it is made of parts these, and what meanwhile goes to another rank.
double pieces_of_saving(const Parallel& parallel, const nn::ParameterList& parameters,
                        Device device) {
  double piece = 0;
  for (const nn::Parameter* p : parameters)
    piece = std::max(
        piece, 4 * static_cast<double>(io::TensorRange::whole(p->placement.global).elements()));
  const bool shared = device == Device::cpu && holders_of(parallel.mesh(), parameters).size() > 1;
  return (shared ? 3 : 1) * std::min(piece, static_cast<double>(CheckpointFiles::kPiece));
}

/// Of values that are read (models/folder/load_tensors.h): f32 as they lie in a file; bf16 there,
/// as f32, and converted again.
double pieces_of_loading(const Optimizer& optimizer) {
  constexpr double kMebi = 1 << 20;
  const bool f32 = std::ranges::all_of(
      optimizer.state(), [](const OptimizerState& state) { return state.dtype == DType::f32; });
  return f32 ? 4 * kMebi : (4 + 2 + 4 + 2) * kMebi;
}

/// At most kLookedAt samples, in order.
std::vector<std::uint64_t> first_of_epoch(const Recipe& recipe, const Dataset& data) {
  const auto order = data.order(recipe.train.seed, data::Packing::blocks);
  std::vector<std::uint64_t> samples;
  for (std::uint64_t block = 0; block < order->blocks() && samples.size() < kLookedAt; ++block)
    for (const std::uint64_t i : order->block(0, block))
      samples.push_back(i);
  return samples;
}

double bytes_of(const std::vector<Tensor>& tensors) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors)
    bytes += tensor.bytes();
  return static_cast<double>(bytes);
}

}  // namespace

std::vector<data::Entry> fullest_pack(const Recipe& recipe, const Dataset& data) {
  // Of a blend the first samples of all its folders, as training sees them.
  std::vector<std::uint64_t> looked_at(std::min(kLookedAt, data.size()));
  std::iota(looked_at.begin(), looked_at.end(), std::uint64_t{0});
  if (!data.sources().empty()) looked_at = first_of_epoch(recipe, data);
  const std::vector<std::int64_t> tokens = data.lengths(recipe.model)(looked_at);
  data::Pack fullest;
  const Kind& kind = kind_of(recipe.model.type);
  std::pair<double, double> most;
  for (const data::Pack& pack : data::plan_packs(tokens, recipe.data.pack_options())) {
    std::pair<double, double> load;
    for (const std::size_t i : pack) {
      const data::Entry sample = data.sizes(looked_at[i]);
      const double bytes = kind.sample_bytes(recipe, sample);
      if (kind.one_by_one())
        load = {std::max(load.first, bytes), load.second + bytes};
      else
        load = {load.first + static_cast<double>(tokens[i]),
                load.second + recipe.text_tokens(sample.text_tokens)};
    }
    if (load > most) most = load, fullest = pack;
  }
  std::vector<data::Entry> samples;
  for (const std::size_t i : fullest)
    samples.push_back(data.sizes(looked_at[i]));
  return samples;
}

ModelNumbers model_numbers(const Recipe& recipe) {
  const std::unique_ptr<Objective> objective = on_meta(recipe, Recompute::none);
  const std::int64_t trained = nn::element_count(objective->parameters());
  const nn::ParameterList& frozen = objective->frozen();
  return {frozen.empty() ? trained : nn::element_count(frozen), trained,
          state_bytes(recipe.optimizer, objective->parameters())};
}

RankPacks packs_of_rank(const Recipe& recipe, int ranks) {
  const int sharers = recipe.parallel.sharers();
  const int data_ranks = std::max(1, ranks / sharers);
  const int all = (recipe.data.packs + data_ranks - 1) / data_ranks;
  const int together = recipe.packs_together();
  return {all, together > 0 ? std::min(together, all) : all};
}

EmaRecipe average_on_device(const EmaRecipe& ema, Device device) {
  EmaRecipe there = ema;
  if (ema.place == "host" && device != Device::cpu) there.mode = "off";
  there.place = "device";
  return there;
}

SampleFlops::SampleFlops(const Recipe& recipe)
    : recipe_(recipe), objective_(on_meta(recipe, Recompute::none)) {}

double SampleFlops::pass(data::Entry sample, int text_tokens) const {
  sample.text_tokens = text_tokens;
  const MetaAccount account(Device::cpu);
  objective_->pass(*objective_->blank({sample}), true);
  return account.work().flops;
}

double SampleFlops::of(const data::Entry& sample) {
  const auto [found, fresh] =
      known_.try_emplace({sample.frames, sample.height, sample.width}, OfText{});
  OfText& flops = found->second;
  const int least = recipe_.text_tokens(0);
  if (fresh) {
    const double few = pass(sample, least);
    flops.each = pass(sample, least + 1) - few;
    flops.none = few - least * flops.each;
  }
  return flops.none + recipe_.text_tokens(sample.text_tokens) * flops.each;
}

namespace {

/// Steps with as many batches as memory depends on. What the allocator keeps is what it is from the
/// second time on, two passes of a step or two steps of a pass; in a pipeline from the third turn
/// on.
void run_some(const Recipe& recipe, const Parallel& parallel, TrainingStep& step,
              std::span<const std::unique_ptr<Batch>> batches, CountedParts parts) {
  PipelineSchedule schedule;
  std::size_t of_step = packs_of_rank(recipe, parallel.world().size()).passes() > 1 ? 2 : 1;
  std::size_t steps = 2 / of_step;
  if (const int pp = parallel.network().pp_size(); pp > 1) {
    const int ahead = recipe.parallel.ahead;
    of_step = std::min((batches.size() + 1) / 2, 3 * static_cast<std::size_t>(pp * (1 + ahead)));
    steps = 1;
    schedule =
        schedule_pipeline({pp, recipe.parallel.vpp, ahead}, std::vector<MicrobatchCost>(of_step));
  }
  for (std::size_t i = 0; i < steps; ++i) {
    step.set_step(step.fullest_step());
    step.pass_all(batches.subspan(i * of_step, of_step), schedule);
    if (parts == CountedParts::passes) continue;
    step.sum();
    step.update(0, 1);
  }
}

/// What passes at once, where each pack has these.
std::vector<data::Entry> samples_together(const std::vector<data::Entry>& pack, int packs) {
  std::vector<data::Entry> samples;
  for (int i = 0; i < packs; ++i)
    samples.insert(samples.end(), pack.begin(), pack.end());
  return samples;
}

}  // namespace

MemoryNeed memory_of_rank(const Recipe& recipe, int rank, int ranks, Recompute recompute,
                          Device device, const std::vector<data::Entry>& pack, CountedParts parts) {
  const MetaAccount account(device);
  const auto [packs, together] = packs_of_rank(recipe, ranks);
  const std::vector<data::Entry> samples = samples_together(pack, together);
  const std::unique_ptr<dist::World> world = dist::counted_world(rank, ranks);
  const Parallel parallel(recipe, *world);
  std::unique_ptr<Objective> made =
      kind_of(recipe.model.type)
          .make_objective(recipe, recompute, Device::meta, parallel.network());
  const auto held = static_cast<double>(account.memory().current);
  TrainingStep step(recipe, parallel, std::move(made), average_on_device(recipe.ema, device));
  // Then no sum of gradients begins in a pass.
  if (parts == CountedParts::passes) step.watch([](TrainingStep::Part) {});
  const Objective& objective = step.objective();
  MemoryNeed need;
  double largest = 0;  // as f32, drawn before it is put in its place
  std::vector<const nn::ParameterList*> lists = {&objective.parameters(), &objective.frozen()};
  for (const OtherNetwork& other : objective.others())
    lists.push_back(other.parameters);
  for (const nn::ParameterList* list : lists)
    for (const nn::Parameter* p : *list) {
      const nn::Parameter& kept = p->state ? *p->state : *p;  // what is drawn here
      const nn::Parameter& here = p->sharded ? kept : *p;
      if (kept.grad.defined())
        largest = std::max(largest, 4 * static_cast<double>(kept.elements()));
      need.weights += bytes_of({here.value, here.high, kept.low});
      need.gradients += bytes_of({here.grad});
    }
  for (const TrainingStep::Trained& network : step.networks())
    for (const OptimizerState& state : network.optimizer.state())
      need.moments += bytes_of(state.tensors);
  need.average = bytes_of(step.optimizer().ema());
  const double lasting = need.total();
  if (device == Device::cpu) need.mpi = memory_of_mpi(ranks);
  const double program = device == Device::cpu ? program_memory() + need.mpi : 0;
  need.construction = program + std::max(static_cast<double>(account.memory().peak),
                                         held + (device == Device::cpu ? largest : 0));
  const double saving = pieces_of_saving(parallel, step.shards().states(), device);
  need.load =
      program + static_cast<double>(account.memory().current) + pieces_of_loading(step.optimizer());

  // The batches of all packs are made before the first one passes, and those of the next step
  // meanwhile.
  double read = 0;
  for (const data::Entry& sample : samples)
    read += kind_of(recipe.model.type).sample_bytes(recipe, sample);
  std::vector<std::unique_ptr<Batch>> batches;
  for (int i = 0; !samples.empty() && i < 2 * packs; i += together)
    batches.push_back(objective.blank(samples));
  if (!batches.empty())
    run_some(recipe, parallel, step, batches, parts);
  else if (parts == CountedParts::all)
    step.gather();
  const MemoryStats memory = account.memory();
  need.save = program + static_cast<double>(memory.current) + saving;
  need.activations = static_cast<double>(memory.peak) - lasting;
  need.pinned = static_cast<double>(account.pinned().held);
  // Samples as they were read, and put one after the other; where ranks share them those of all
  // packs of a step; and what is read ahead.
  if (device == Device::cpu) {
    const double sharers = parallel.sharers().size(), steps = 1.0 * packs / together;
    const double kept = ((sharers > 1 ? steps : 1) + 1) * read +
                        bytes_ahead(recipe, steps * read / sharers, sharers > 1);
    need.host = program + kept + static_cast<double>(memory.held - memory.peak);
    need.save += kept;
  }
  return need;
}

std::vector<MemoryNeed> memory_of_stages(const Recipe& recipe, int ranks, Recompute recompute,
                                         Device device, const std::vector<data::Entry>& pack) {
  const dist::Layout layout = dist::fit_layout(recipe.parallel.sizes(), ranks);
  const int fullest =
      fullest_rank(recipe, ranks, samples_together(pack, packs_of_rank(recipe, ranks).together));
  std::vector<MemoryNeed> stages;
  for (int stage = 0; stage < layout.pp; ++stage)
    stages.push_back(memory_of_rank(recipe, stage * (ranks / layout.pp) + fullest, ranks, recompute,
                                    device, pack));
  return stages;
}

MemoryNeed memory_need(const Recipe& recipe, int ranks, Recompute recompute, Device device,
                       const std::vector<data::Entry>& pack) {
  const std::vector<MemoryNeed> stages = memory_of_stages(recipe, ranks, recompute, device, pack);
  MemoryNeed need = *std::ranges::max_element(stages, {}, &MemoryNeed::total);
  for (const MemoryNeed& stage : stages)  // that of the host another one may need more of
    need.pinned = std::max(need.pinned, stage.pinned);
  return need;
}

double snapshot_bytes(const Recipe& recipe, int ranks) {
  const MetaAccount account(Device::cpu);
  Recipe alone = recipe;
  alone.parallel = {};
  const std::unique_ptr<dist::World> world = dist::counted_world(0, 1);
  const Parallel parallel(alone, *world);
  EmaRecipe average = recipe.ema;
  average.place = "device";
  const Kind& kind = kind_of(recipe.model.type);
  const TrainingStep step(
      alone, parallel,
      kind.make_objective(alone, Recompute::none, Device::meta, parallel.network()), average);
  Checkpoint checkpoint{.optimizer = step.networks().front().optimizer};
  if (recipe.lora.rank > 0)
    checkpoint.adapters = models::lora_metadata(kind.adapter_targets(recipe), recipe.lora);
  for (std::size_t i = 1; i < step.networks().size(); ++i)
    checkpoint.others.push_back({step.networks()[i].name, step.networks()[i].optimizer});
  return CheckpointFiles(sets_of(checkpoint, SaveLimits().file_bytes), ranks).most_of_rank();
}

void check_memory(const Recipe& recipe, int ranks, Device device, const MemoryNeed& need,
                  double usable) {
  const double lasting = need.total() - need.activations - need.host;
  if (lasting <= usable) return;
  fail_usage(
      "weights, gradients and the optimizer's state need about {} of memory on each rank; there "
      "are {}: {}",
      format_bytes(lasting), format_bytes(usable),
      less_memory(recipe, ranks, Recompute::block, device, need, usable));
}

void check_offload(const Recipe& recipe, Device device) {
  if (recipe.model.offload && device == Device::cpu)
    fail_usage(
        "'model.offload' is true, and this run computes on the CPU: leave it out, it is for a GPU");
}

void check_pinned(const MemoryNeed& need, int local_ranks) {
  if (const double usable = usable_memory(Device::cpu, local_ranks); need.pinned > usable)
    fail_usage(
        "'model.offload' is true, and would pin about {} of the host's memory on each rank; {} are "
        "usable: lower 'data.tokens', or leave it out",
        format_bytes(need.pinned), format_bytes(usable));
}

double reading_bytes(const Recipe& recipe, const Dataset& data, Device device) {
  return data.device_bytes() + (device == Device::cpu ? fetch_bytes(recipe, data) : 0);
}

double memory_beside(const Recipe& recipe, const Dataset& data, Device device,
                     const dist::World& world) {
  const double communicators =
      communicator_bytes(recipe, world.size(), world.least_local_size(), device);
  return std::max(0.0, usable_memory(device, world.local_size()) -
                           reading_bytes(recipe, data, device) - communicators);
}

double usable_memory(Device device, int local_ranks) {
  if (device == Device::cuda) {
    // Of what others leave, as it was before this process put anything there.
    static const GpuMemory memory = gpu_memory();
    return models::usable_gpu_memory(static_cast<double>(memory.total),
                                     static_cast<double>(memory.free));
  }
  return 0.8 * host_memory().all / local_ranks;
}

Recompute choose_recompute(const Recipe& recipe, int ranks, Device device, double usable,
                           const std::vector<data::Entry>& pack) {
  for (const Recompute one : kind_of(recipe.model.type).recomputes()) {
    if (recipe.model.recompute == nn::recompute_name(one)) return one;
    if (recipe.model.recompute == "auto" &&
        memory_need(recipe, ranks, one, device, pack).total() <= usable)
      return one;
  }
  return Recompute::block;
}

void log_memory(const Recipe& recipe, int ranks, const MemoryNeed& need, Recompute recompute,
                Device device, double usable) {
  const bool offload = recipe.model.offloads(recompute);
  const std::string chosen = fmt::format("{}{}", nn::recompute_name(recompute),
                                         offload ? " and 'model.offload' true" : "");
  if (need.total() > usable)
    log_warning("about {} of memory are needed even with 'model.recompute' {}, {} are there: {}",
                format_bytes(need.total()), chosen, format_bytes(usable),
                less_memory(recipe, ranks, recompute, device, need, usable));
  else if (device == Device::cuda || recompute != Recompute::none)
    log_info("'model.recompute' is {}: about {} of {}", chosen, format_bytes(need.total()),
             format_bytes(usable));
}

void log_offload(const Recipe& recipe, const MemoryNeed& need, Recompute recompute) {
  if (!recipe.model.offload) return;
  if (!recipe.model.offloads(recompute))
    return log_info("'model.offload' moves nothing: 'model.recompute' is {}",
                    nn::recompute_name(recompute));
  log_info("what goes into blocks waits in up to {} of the host's memory ('model.offload'){}",
           format_bytes(need.pinned),
           kind_of(recipe.model.type).has_graphs() ? "; steps run without CUDA graphs" : "");
}

}  // namespace vfm::train

// SPDX-License-Identifier: Apache-2.0
#include "train/memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "data/packing.h"
#include "models/predict.h"
#include "tensor/device.h"
#include "tensor/meta.h"
#include "tensor/program_memory.h"
#include "train/kind.h"
#include "train/optimizer.h"
#include "train/recipe_file.h"

namespace vfm::train {

using models::Recompute;

namespace {

/// More samples than this say nothing new about packs.
constexpr std::size_t kLookedAt = 65536;

/// Of this process's control group, which a container has; infinite without one. Version 2, and 1.
double group_limit() {
  double limit = std::numeric_limits<double>::infinity();
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    double bytes = 0;
    if (file >> bytes && bytes > 0) limit = std::min(limit, bytes);  // version 2 may say "max"
  }
  return limit;
}

std::unique_ptr<Objective> on_meta(const Recipe& recipe, Recompute recompute) {
  return kind_of(recipe.model.type).make_objective(recipe, recompute, Device::meta);
}

double bytes_of(const std::vector<Tensor>& tensors) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors)
    bytes += tensor.bytes();
  return static_cast<double>(bytes);
}

}  // namespace

std::vector<data::Entry> fullest_pack(const Recipe& recipe, const Dataset& data) {
  std::vector<std::int64_t> tokens = data.tokens(recipe.model);
  tokens.resize(std::min(tokens.size(), kLookedAt));
  data::Pack fullest;
  const Kind& kind = kind_of(recipe.model.type);
  std::pair<double, double> most;
  for (const data::Pack& pack : data::plan_packs(tokens, recipe.data.pack_options())) {
    std::pair<double, double> load;
    for (const std::size_t i : pack) {
      const data::Entry& sample = data.entry(i);
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
    samples.push_back(data.entry(i));
  return samples;
}

ModelNumbers model_numbers(const Recipe& recipe) {
  const std::unique_ptr<Objective> objective = on_meta(recipe, Recompute::none);
  const std::int64_t trained = nn::element_count(objective->parameters());
  const nn::ParameterList& frozen = objective->frozen();
  return {frozen.empty() ? trained : nn::element_count(frozen), trained};
}

RankPacks packs_of_rank(const Recipe& recipe, int ranks) {
  const int all = (recipe.data.packs + ranks - 1) / ranks;
  return {all, recipe.data.micro_packs > 0 ? std::min(recipe.data.micro_packs, all) : all};
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

MemoryNeed memory_need(const Recipe& recipe, int ranks, Recompute recompute, Device device,
                       const std::vector<data::Entry>& pack) {
  const MetaAccount account(device);
  const std::unique_ptr<Objective> objective = on_meta(recipe, recompute);
  const EmaRecipe ema = average_on_device(recipe.ema, device);
  const Optimizer state(recipe.optimizer, ema, objective->parameters());
  MemoryNeed need;
  for (const nn::ParameterList* list : {&objective->parameters(), &objective->frozen()})
    for (const nn::Parameter* p : *list) {
      need.weights += bytes_of({p->value, p->high, p->low});
      need.gradients += bytes_of({p->grad});
    }
  need.moments = bytes_of(state.m) + bytes_of(state.v);
  need.average = bytes_of(state.ema());
  const double lasting = need.total();

  // The batches of all packs are made before the first one passes, and those of the next step
  // meanwhile.
  const auto [packs, together] = packs_of_rank(recipe, ranks);
  std::vector<data::Entry> samples;
  double read = 0;
  for (int i = 0; i < together; ++i)
    for (const data::Entry& sample : pack) {
      samples.push_back(sample);
      read += kind_of(recipe.model.type).sample_bytes(recipe, sample);
    }
  std::vector<std::unique_ptr<Batch>> batches;
  for (int i = 0; !samples.empty() && i < 2 * packs; i += together)
    batches.push_back(objective->blank(samples));
  // What the allocator keeps is what it is from the second time on.
  for (std::size_t i = 0; i < batches.size() && i < 2; ++i)
    objective->pass(*batches[i], i == 0);
  const MemoryStats memory = account.memory();
  need.activations = static_cast<double>(memory.peak) - lasting;
  need.pinned = static_cast<double>(account.pinned().held);
  // Samples as they were read, and put one after the other.
  if (device == Device::cpu)
    need.host = program_memory() + 2 * read + static_cast<double>(memory.held - memory.peak);
  return need;
}

void check_memory(const Recipe& recipe, const MemoryNeed& need, double usable) {
  const double lasting = need.total() - need.activations - need.host;
  if (lasting <= usable) return;
  std::string ways = "a smaller model";
  if (recipe.optimizer.moment_type() == DType::f32) ways += ", 'optimizer.moments' bf16";
  if (need.average > 0) ways += ", 'ema.mode' off";
  if (recipe.lora.rank == 0 && has_key(recipe, "lora.rank")) ways += ", adapters ('lora.rank')";
  fail_usage(
      "weights, gradients and the optimizer's state need about {} of memory on each rank, and {} "
      "are there: choose {}, or a machine with more memory",
      format_bytes(lasting), format_bytes(usable), ways);
}

void check_offload(const Recipe& recipe, Device device) {
  if (recipe.model.offload && device == Device::cpu)
    fail_usage(
        "'model.offload' is true, and this run computes on the CPU, whose memory is the host's: "
        "it is for a GPU");
}

void check_pinned(const MemoryNeed& need, int local_ranks) {
  if (const double usable = usable_memory(Device::cpu, local_ranks); need.pinned > usable)
    fail_usage(
        "'model.offload' is true, and would pin about {} of the host's memory on each rank, of "
        "which {} are usable: lower 'data.tokens', or leave it out",
        format_bytes(need.pinned), format_bytes(usable));
}

double usable_memory(Device device, int local_ranks) {
  if (device == Device::cuda) {
    // Of what others leave, as it was before this process put anything there.
    static const GpuMemory memory = gpu_memory();
    return models::usable_gpu_memory(static_cast<double>(memory.total),
                                     static_cast<double>(memory.free));
  }
  const double all =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return 0.8 * std::min(all, group_limit()) / local_ranks;
}

Recompute choose_recompute(const Recipe& recipe, int ranks, Device device, double usable,
                           const std::vector<data::Entry>& pack) {
  for (const Recompute one : kind_of(recipe.model.type).recomputes()) {
    if (recipe.model.recompute == models::recompute_name(one)) return one;
    if (recipe.model.recompute == "auto" &&
        memory_need(recipe, ranks, one, device, pack).total() <= usable)
      return one;
  }
  return Recompute::block;
}

void log_memory(const Recipe& recipe, const MemoryNeed& need, Recompute recompute, Device device,
                double usable) {
  const bool offload = recipe.model.offloads(recompute);
  const std::string chosen = fmt::format("{}{}", models::recompute_name(recompute),
                                         offload ? " and 'model.offload' true" : "");
  const bool may = device == Device::cuda && !offload && has_key(recipe, "model.offload");
  if (need.total() > usable)
    log_warning(
        "about {} of memory are needed even with 'model.recompute' {}, {} are there: lower "
        "'data.tokens', or choose {}'optimizer.moments' bf16",
        format_bytes(need.total()), chosen, format_bytes(usable),
        may ? "'model.offload' true or " : "");
  else if (device == Device::cuda || recompute != Recompute::none)
    log_info("'model.recompute' is {}: about {} of {}", chosen, format_bytes(need.total()),
             format_bytes(usable));
}

void log_offload(const Recipe& recipe, const MemoryNeed& need, Recompute recompute) {
  if (!recipe.model.offload) return;
  if (!recipe.model.offloads(recompute))
    return log_info("'model.offload' moves nothing: 'model.recompute' is {}",
                    models::recompute_name(recompute));
  log_info("what goes into blocks waits in up to {} of the host's memory ('model.offload'){}",
           format_bytes(need.pinned),
           kind_of(recipe.model.type).has_graphs() ? "; steps run without CUDA graphs" : "");
}

}  // namespace vfm::train

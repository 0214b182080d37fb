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
#include "tensor/device.h"
#include "tensor/program_memory.h"
#include "train/kind.h"
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

}  // namespace

double text_memory(const Recipe& recipe, const PackShare& share, const PackLoad& load,
                   double text_width, double keys, double layers) {
  const double size = static_cast<double>(dtype_size(recipe.compute())), packs = share.together;
  const double cast = recipe.compute() == DType::bf16 ? size : 0;
  // Keys and values of a text, as projected and normed, of each layer; in backward once more.
  return load.text_rows * (share.packs * text_width * 2 * 4 +
                           packs * (text_width * cast + 4 * keys * size * (layers + 1)));
}

models::NetworkCost model_cost(const Recipe& recipe, double tokens, double text_tokens,
                               double pack_tokens, Recompute recompute) {
  return kind_of(recipe.model.type).cost(recipe, tokens, text_tokens, pack_tokens, recompute);
}

std::int64_t trained_parameters(const Recipe& recipe) {
  if (recipe.lora.rank > 0) return models::lora_parameters(recipe.model.dit, recipe.lora);
  return model_cost(recipe, 1, 1, 1, Recompute::none).parameters;
}

PackLoad pack_load(const Recipe& recipe, const Dataset& data) {
  std::vector<std::int64_t> tokens = data.tokens(recipe.model);
  tokens.resize(std::min(tokens.size(), kLookedAt));
  PackLoad load;
  for (const data::Pack& pack : data::plan_packs(tokens, recipe.data.pack_options())) {
    double rows = 0;
    for (const std::size_t i : pack)
      rows += recipe.text_tokens(data.entry(i).text_tokens);
    load.text_rows = std::max(load.text_rows, rows);
    load.samples = std::max(load.samples, static_cast<double>(pack.size()));
  }
  return load;
}

MemoryNeed memory_need(const Recipe& recipe, int ranks, Recompute recompute, Device device,
                       const PackLoad& load) {
  // A rank's packs of a step go through the network together, or micro_packs at a time.
  PackShare share{(recipe.data.packs + ranks - 1) / ranks, 0};
  share.together =
      recipe.data.micro_packs > 0 ? std::min(recipe.data.micro_packs, share.packs) : share.packs;
  const double parameters = static_cast<double>(trained_parameters(recipe));
  const bool host = recipe.ema.place == "host" && device != Device::cpu;
  MemoryNeed need;
  need.weights = 4 * parameters;
  if (recipe.lora.rank > 0)
    need.weights += static_cast<double>(dtype_size(recipe.compute())) *
                    static_cast<double>(model_cost(recipe, 1, 1, 1, recompute).parameters);
  need.gradients = 4 * parameters;
  need.moments = 2 * parameters * static_cast<double>(dtype_size(recipe.optimizer.moment_type()));
  need.average = recipe.ema.mode == "off" || host ? 0 : 4 * parameters;
  const PassMemory pass =
      kind_of(recipe.model.type).pass_memory(recipe, share, load, recompute, device);
  need.activations = pass.activations;
  if (device == Device::cpu) need.host = program_memory() + pass.host;
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

double usable_memory(Device device, int local_ranks) {
  if (device == Device::cuda) {
    // Of what others leave, as it was before this process put anything there.
    static const GpuMemory memory = gpu_memory();
    return std::min(0.95 * static_cast<double>(memory.total), static_cast<double>(memory.free)) -
           2.0 * (1 << 30);
  }
  const double all =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return 0.8 * std::min(all, group_limit()) / local_ranks;
}

Recompute choose_recompute(const Recipe& recipe, int ranks, Device device, double usable,
                           const PackLoad& load) {
  for (const Recompute one : kind_of(recipe.model.type).recomputes()) {
    if (recipe.model.recompute == models::recompute_name(one)) return one;
    if (recipe.model.recompute == "auto" &&
        memory_need(recipe, ranks, one, device, load).total() <= usable)
      return one;
  }
  return Recompute::block;
}

void log_memory(const MemoryNeed& need, Recompute recompute, Device device, double usable) {
  const std::string chosen(models::recompute_name(recompute));
  if (need.total() > usable)
    log_warning(
        "about {} of memory are needed even with 'model.recompute' {}, {} are there: lower "
        "'data.tokens', or choose 'optimizer.moments' bf16",
        format_bytes(need.total()), chosen, format_bytes(usable));
  else if (device == Device::cuda || recompute != Recompute::none)
    log_info("'model.recompute' is {}: about {} of {}", chosen, format_bytes(need.total()),
             format_bytes(usable));
}

}  // namespace vfm::train

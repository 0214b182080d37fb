// SPDX-License-Identifier: Apache-2.0
#include "train/memory.h"

#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "tensor/device.h"

namespace vfm::train {

using models::Recompute;

models::DitCost model_cost(const Recipe& recipe, double tokens, double text_tokens,
                           double pack_tokens, Recompute recompute) {
  if (recipe.model.autoregressive())
    return models::decoder_cost(recipe.model.decoder, tokens, text_tokens, pack_tokens,
                                recipe.compute(), recompute);
  models::DitCost cost = models::dit_cost(recipe.model.dit, tokens, text_tokens, pack_tokens,
                                          recipe.compute(), recompute);
  if (recipe.lora.rank > 0) cost.flops_per_token -= cost.weight_flops;
  return cost;
}

std::int64_t trained_parameters(const Recipe& recipe) {
  if (recipe.lora.rank > 0) return models::lora_parameters(recipe.model.dit, recipe.lora);
  return model_cost(recipe, 1, 1, 1, Recompute::none).parameters;
}

MemoryNeed memory_need(const Recipe& recipe, int ranks, Recompute recompute, Device device) {
  // A rank's packs of a step go through the network together, or micro_packs at a time.
  const int share = (recipe.data.packs + ranks - 1) / ranks;
  const int together =
      recipe.data.micro_packs > 0 ? std::min(recipe.data.micro_packs, share) : share;
  const double tokens = static_cast<double>(recipe.data.tokens) * together;
  const models::DitCost cost = model_cost(recipe, 1, 1, tokens, recompute);
  const double parameters = static_cast<double>(trained_parameters(recipe));
  const bool host = recipe.ema.place == "host" && device != Device::cpu;
  MemoryNeed need;
  need.weights = 4 * parameters;
  if (recipe.lora.rank > 0)
    need.weights +=
        static_cast<double>(dtype_size(recipe.compute())) * static_cast<double>(cost.parameters);
  need.gradients = 4 * parameters;
  need.moments = 2 * parameters * static_cast<double>(dtype_size(recipe.optimizer.moment_type()));
  need.average = recipe.ema.mode == "off" || host ? 0 : 4 * parameters;
  need.activations = cost.activation_bytes;
  return need;
}

double usable_memory(Device device, int ranks) {
  if (device == Device::cuda)
    return 0.95 * static_cast<double>(gpu_memory().total) - 2.0 * (1 << 30);
  const double all =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return 0.8 * all / ranks;
}

Recompute choose_recompute(const Recipe& recipe, int ranks, Device device, double usable) {
  constexpr Recompute kAll[] = {Recompute::none, Recompute::elementwise, Recompute::block};
  for (const Recompute one : kAll) {
    if (recipe.model.recompute == models::recompute_name(one)) return one;
    if (recipe.model.recompute == "auto" &&
        memory_need(recipe, ranks, one, device).total() <= usable)
      return one;
  }
  return Recompute::block;
}

}  // namespace vfm::train

// SPDX-License-Identifier: Apache-2.0
#include "train/cost/less_memory.h"

#include <algorithm>
#include <vector>

#include "train/kind.h"
#include "train/recipe/recipe_file.h"
#include "train/report/signs.h"

namespace vfm::train {
namespace {

using nn::Recompute;

bool can_recompute_more(const Recipe& recipe, Recompute now) {
  const auto known = kind_of(recipe.model.type).recomputes();
  return std::ranges::any_of(known, [&](Recompute one) { return one > now; });
}

/// Where all ranks that have the same weights keep all of the state, or one of them would.
void add_shards(const Recipe& recipe, int ranks, std::vector<std::string>& ways) {
  const dist::Layout& parallel = recipe.parallel;
  if (kind_of(recipe.model.type).one_by_one()) return;
  const int alike = ranks / std::max(1, parallel.tp * parallel.pp);
  if (alike <= 1)
    ways.emplace_back("share the state among more ranks ('parallel.shard' full)");
  else if (parallel.shard != ShardKind::full)
    ways.emplace_back("set 'parallel.shard' full");
  else if (parallel.replicate > 1)
    ways.emplace_back("set 'parallel.replicate' 1");
  else
    ways.emplace_back("share the state among more ranks");
}

}  // namespace

std::string less_memory(const Recipe& recipe, int ranks, Recompute recompute, Device device,
                        const MemoryNeed& need, double usable) {
  const double lasting = need.weights + need.gradients + need.moments + need.average;
  const bool lasting_fills = lasting > kFullMemory * usable;
  const Kind& kind = kind_of(recipe.model.type);
  std::vector<std::string> ways;
  if (!lasting_fills) {
    if (can_recompute_more(recipe, recompute))
      ways.emplace_back("set 'model.recompute' block");
    else if (device == Device::cuda && kind.can_offload() && !recipe.model.offloads(recompute))
      ways.emplace_back("set 'model.offload' true");
    if (packs_of_rank(recipe, ranks).together > 1) ways.emplace_back("set 'data.micro_packs' 1");
    ways.emplace_back("lower 'data.tokens'");
  }
  if (lasting_fills || lasting > need.total() / 2) {
    add_shards(recipe, ranks, ways);
    if (recipe.optimizer.moments == "f32")
      ways.emplace_back("set 'optimizer.moments' bf16 or 8bit");
    else if (recipe.optimizer.moments == "bf16")
      ways.emplace_back("set 'optimizer.moments' 8bit");
    if (need.average > 0)
      ways.emplace_back(device == Device::cuda ? "set 'ema.place' host" : "set 'ema.mode' off");
    if (recipe.lora.rank == 0 && has_key(recipe, "lora.rank"))
      ways.emplace_back("train adapters ('lora.rank')");
    ways.emplace_back("take a smaller model");
  }
  std::string text;
  for (std::size_t i = 0; i < ways.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ways.size() ? " or " : ", ") + ways[i];
  return text;
}

}  // namespace vfm::train

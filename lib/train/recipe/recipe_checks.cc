// SPDX-License-Identifier: Apache-2.0
#include "train/recipe/recipe_checks.h"

#include <numeric>
#include <string>

#include "base/error.h"
#include "nn/cp_kind.h"
#include "train/kind.h"
#include "train/recipe/recipe_file.h"
#include "train/state/optimizer_kinds.h"

namespace vfm::train {
void check_adapters(const Recipe& recipe, bool begins) {
  if (recipe.lora.rank > 0 && !begins)
    fail_usage("'lora.rank' is {}: adapters need a model to adapt, give --init DIR",
               recipe.lora.rank);
  if (recipe.lora.rank == 0 && (recipe.lora.alpha != 0 || !recipe.lora.targets.empty()))
    fail_usage("'{}' is set, but 'lora.rank' is not: adapters need a rank",
               recipe.lora.alpha != 0 ? "lora.alpha" : "lora.targets");
}

void check_offloaded(const Recipe& recipe) {
  if (recipe.model.offload &&
      (recipe.model.recompute == "none" || recipe.model.recompute == "elementwise"))
    fail_usage(
        "'model.offload' is true, and {}: what goes into blocks waits elsewhere only where they "
        "are recomputed; choose auto, block_but_attention or block",
        describe_setting(recipe, "model.recompute"));
}

void check_context(const Recipe& recipe) {
  const dist::Layout& parallel = recipe.parallel;
  if (parallel.cp_heads > 0 && parallel.cp_kind != nn::CpKind::all_to_all_ring)
    fail_usage("{}, and {}: only with {} do some ranks of cp share heads; leave it out",
               describe_setting(recipe, "parallel.cp_heads"),
               describe_setting(recipe, "parallel.cp_kind"),
               nn::cp_kind_name(nn::CpKind::all_to_all_ring));
}

/// What a pipeline cannot do yet, and what makes none.
void check_pipeline(const Recipe& recipe) {
  const dist::Layout& parallel = recipe.parallel;
  if (parallel.pp == 1) {
    if (parallel.vpp > 1 || !parallel.stages.empty())
      fail_usage("{}, and 'parallel.pp' is 1: only stages of a pipeline have chunks of blocks",
                 parallel.vpp > 1 ? describe_setting(recipe, "parallel.vpp")
                                  : describe_setting(recipe, "parallel.stages"));
    if (parallel.ahead > 0)
      fail_usage("{}, and 'parallel.pp' is 1: only stages of a pipeline are ahead of each other",
                 describe_setting(recipe, "parallel.ahead"));
    return;
  }
  if (parallel.ahead > 0 && parallel.vpp > 1)
    fail_usage("{}, and {}: chunks that come by turns have as many microbatches under way as help",
               describe_setting(recipe, "parallel.ahead"),
               describe_setting(recipe, "parallel.vpp"));
  if (!kind_of(recipe.model.type).has_stages())
    fail_usage("{}, and a model of type '{}' has no stages: set it to 1",
               describe_setting(recipe, "parallel.pp"), recipe.model.type);
  const auto chunks =
      static_cast<std::size_t>(parallel.pp) * static_cast<std::size_t>(parallel.vpp);
  const std::vector<int>& stages = parallel.stages;
  if (stages.empty()) return;
  if (stages.size() != chunks)
    fail_usage("{}, must be {} numbers: 'parallel.pp' times 'parallel.vpp'",
               describe_setting(recipe, "parallel.stages"), chunks);
  const int blocks = std::accumulate(stages.begin(), stages.end(), 0);
  ModelRecipe model = recipe.model;
  const int all = *kind_of(model.type).blocks(model);
  if (blocks != all)
    fail_usage("{}, {} blocks together, and {}: must be the same",
               describe_setting(recipe, "parallel.stages"), blocks,
               describe_setting(recipe, "model.num_layers"));
}

void check_shards(const Recipe& recipe) {
  const dist::Layout& parallel = recipe.parallel;
  if (parallel.replicate > 1 && !parallel.shards_state())
    fail_usage("{}, and {}: only a state that is shared has replicas",
               describe_setting(recipe, "parallel.replicate"),
               describe_setting(recipe, "parallel.shard"));
  if (parallel.keeps_gathered() && parallel.shard != ShardKind::full)
    fail_usage("'parallel.reshard' is false, and {}: only with full are matrices gathered",
               describe_setting(recipe, "parallel.shard"));
  if (parallel.reshard == dist::Reshard::always && parallel.pp > 1 &&
      parallel.shard == ShardKind::full)
    fail_usage(
        "'parallel.reshard' is true, and {}: the ranks that gather weights together go through "
        "blocks in different orders in a pipeline, so they gather once a step and free nothing "
        "in it; leave it at auto",
        describe_setting(recipe, "parallel.pp"));
  if (parallel.shards_state() && kind_of(recipe.model.type).one_by_one())
    fail_usage("{}: the state of a tokenizer is not shared by ranks, leave it out",
               describe_setting(recipe, "parallel.shard"));
}

void check_optimizer(const Recipe& recipe) {
  if (recipe.train.skip_spikes > 0 && recipe.train.skip_spikes <= 1)
    fail_usage("{}: half of all steps are above the median; set it to 0, or to 5, say",
               describe_setting(recipe, "train.skip_spikes"));
  if (!optimizer_kind(recipe.optimizer).for_hidden) {
    if (recipe.optimizer.momentum != OptimizerRecipe().momentum)
      fail_usage("{}, and {}: it has no effect without muon; leave it out",
                 describe_setting(recipe, "optimizer.momentum"),
                 describe_setting(recipe, "optimizer.kind"));
    return;
  }
  const std::string kind = describe_setting(recipe, "optimizer.kind");
  if (recipe.lora.rank > 0)
    fail_usage("{}, and 'lora.rank' is {}: adapters are no matrices of blocks; choose adamw", kind,
               recipe.lora.rank);
  if (kind_of(recipe.model.type).one_by_one())
    fail_usage("{}, and a model of type '{}' has no matrices of blocks: choose adamw", kind,
               recipe.model.type);
}

void check_size(const Recipe& recipe) {
  if (recipe.model.begun || !has_key(recipe, "model.num_attention_heads")) return;
  constexpr const char* kSizes[] = {"model.num_layers", "model.num_attention_heads",
                                    "model.attention_head_dim"};
  std::string defaults;
  for (const char* key : kSizes) {
    if (recipe.given.contains(key)) return;
    defaults += (defaults.empty() ? "" : ", ") + describe_setting(recipe, key);
  }
  fail_usage(
      "the recipe does not say how large the model is: {}, a network of billions of parameters; "
      "set 'model.num_layers' at least, or begin from a model with --init DIR",
      defaults);
}

}  // namespace vfm::train

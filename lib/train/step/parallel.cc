// SPDX-License-Identifier: Apache-2.0
#include "train/step/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "models/dit/architecture.h"
#include "models/dit/network_pack.h"
#include "nn/cp_kind.h"
#include "nn/layout_on_mesh.h"
#include "train/cost/memory.h"
#include "train/data/dataset.h"
#include "train/kind.h"
#include "train/recipe/parallel_fields.h"
#include "train/recipe/recipe_checks.h"
#include "train/recipe/recipe_file.h"

namespace vfm::train {
namespace {

// Those that the mesh does not make anyway.
std::vector<dist::Axes> more_groups(const dist::Layout& parallel) {
  using enum dist::Axes;
  std::vector<dist::Axes> more = {tp | cp | dp, parallel.sharing()};
  if (parallel.shards_state()) more.push_back(tp | cp | shard);
  if (parallel.pp > 1)
    for (const dist::Axes axes : {tp | pp, tp | cp | dp | pp})
      more.push_back(axes);
  if (parallel.pp > 1 && parallel.shards_state()) more.push_back(tp | cp | shard | pp);
  return more;
}

/// The recipe's layout with nothing left open in cp. Only a diffusion network has a choice to make:
/// the others' rule is their own, by name.
dist::Layout layout_for_model(const Recipe& recipe, int of_machine) {
  dist::Layout layout = recipe.parallel;
  const models::NetworkConfig* network = kind_of(recipe.model.type).network(recipe.model);
  if (layout.hybrid && !(network && network->architecture->space_time))
    fail_usage("parallel.hybrid is for model.type={}: a {} has no attention in frames and pixels",
               models::names_of(&models::Architecture::space_time), recipe.model.type);
  if (network)
    return nn::settled_cp(std::move(layout), network->heads(), of_machine, recipe.data.tokens);
  if (layout.cp == 1 || layout.cp_kind == nn::CpKind::automatic)
    layout.cp_kind = nn::CpKind::gather;
  layout.cp_heads = 1;
  return layout;
}

dist::Layout layout_on_ranks(const Recipe& recipe, int ranks, int of_machine) {
  dist::Layout layout = layout_for_model(recipe, of_machine);
  layout.shard = ShardKind::none;  // so that the key of the recipe is named here, not by the mesh
  layout = dist::fit_layout(layout, ranks);
  if (recipe.parallel.shards_state() && layout.dp % layout.replicate != 0)
    throw dist::LayoutRefused(
        fmt::format("{}, and does not divide the {} with samples of their own",
                    describe_setting(recipe, "parallel.replicate"), counted(layout.dp, "rank")),
        ": " + dist::to_string(layout));
  layout.shard = recipe.parallel.shard;
  return layout;
}

int on_machine(int of_machine, const dist::World& world) {
  return of_machine > 0 ? of_machine : world.least_local_size();
}

// Whether a rank is of the first or the last stage of a pipeline: pp is the slowest axis.
bool at_end(const dist::Mesh& mesh, int rank) {
  const int pp = mesh.layout().pp, stage = rank / (mesh.world().size() / pp);
  return stage == 0 || stage == pp - 1;
}

// Of the ranks that share samples those at both ends of a pipeline, or the others.
std::unique_ptr<dist::Group> make_ends(const dist::Mesh& mesh, const dist::Group& sharers) {
  std::vector<int> alike;
  for (const int rank : sharers.ranks())
    if (at_end(mesh, rank) == at_end(mesh, mesh.world().rank())) alike.push_back(rank);
  return mesh.world().group("ends", std::move(alike));
}

/// Of so many ranks all layouts, the nearest to that of the recipe first: whose sizes differ from
/// it by the smallest factors, multiplied. What goes only with what is no longer there, is left
/// out; and of each that with another exchange along cp follows.
std::vector<dist::Layout> layouts_near(const Recipe& recipe, int ranks) {
  const dist::Layout& wanted = recipe.parallel;
  constexpr double kOther = 0.01;  // of what is no size
  std::vector<std::pair<double, dist::Layout>> all;
  std::vector<dist::Layout> sizes = dist::layouts_of(ranks);
  std::ranges::reverse(sizes);
  for (const dist::Layout& size : sizes) {
    dist::Layout one = wanted;
    for (const dist::Axis& axis : dist::all_axes())
      if (axis.most > 0) one.*axis.size = size.*axis.size;
    if (one.pp != wanted.pp) one.stages.clear();
    if (one.pp == 1) one.vpp = 1, one.ahead = 0;
    if (size.dp % one.replicate != 0) one.replicate = 1;
    if (one.cp == 1) one.hybrid = false;
    const double far = dist::distance_of_sizes(wanted, one) +
                       kOther * std::abs(std::log(1.0 * one.replicate / wanted.replicate));
    all.emplace_back(far, one);
    if (one.pp > 1 && one.vpp > 1) {
      one.vpp = 1;
      one.stages.clear();
      all.emplace_back(far + kOther, one);
    }
    if (one.cp == 1 || one.cp_kind == nn::CpKind::automatic) continue;
    one.cp_kind = nn::CpKind::automatic, one.cp_heads = 0;
    all.emplace_back(far + 2 * kOther, one);
  }
  std::ranges::stable_sort(all, {}, &std::pair<double, dist::Layout>::first);
  std::vector<dist::Layout> layouts;
  for (auto& [far, one] : all)
    layouts.push_back(std::move(one));
  return layouts;
}

bool takes(Recipe recipe, int ranks, int of_machine, const Dataset* data) {
  try {
    check_context(recipe);
    check_pipeline(recipe);
    check_shards(recipe);
    judge_layout(recipe, ranks, of_machine);
    if (data != nullptr) data->fit(recipe);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    return false;
  }
  return true;
}

nn::StateShare share_of(const dist::Group& group) {
  return {group.rank(), group.size()};
}

}  // namespace

dist::Group* Parallel::sharers_of_values() const {
  if (!ends_) return &sharers();
  return network_.first_stage() || network_.last_stage() ? ends_.get() : nullptr;
}

std::vector<int> Parallel::places_of_values() const {
  std::vector<int> places;
  for (int place = 0; place < sharers().size(); ++place)
    if (at_end(mesh_, sharers().ranks()[static_cast<std::size_t>(place)])) places.push_back(place);
  return places;
}

int fullest_rank(const Recipe& recipe, int ranks, const std::vector<data::Entry>& samples) {
  if (!recipe.parallel.hybrid || samples.empty()) return 0;
  const std::unique_ptr<dist::World> world = dist::counted_world(0, ranks);
  const Parallel parallel(recipe, *world);
  if (!parallel.network().hybrid) return 0;
  const auto& p = recipe.model.dit.patch_size;
  std::vector<ops::TokenGrid> grids;
  for (const data::Entry& sample : samples)
    grids.push_back({sample.frames / p[0], sample.height / p[1], sample.width / p[2]});
  const nn::FramePlan plan = models::plan_frames(recipe.model.dit, grids, parallel.network());
  int fullest = 0;
  for (int rank = 1; rank < plan.ranks(); ++rank)
    if (plan.tokens_of_frames(rank) > plan.tokens_of_frames(fullest)) fullest = rank;
  return parallel.network().cp->ranks()[static_cast<std::size_t>(fullest)];
}

Parallel::Parallel(const Recipe& recipe, dist::World& world, int of_machine)
    : mesh_(world, layout_on_ranks(recipe, world.size(), on_machine(of_machine, world)),
            more_groups(recipe.parallel)) {
  network_ = nn::layout_on_mesh(mesh_);
  if (network_.pp != nullptr && network_.stages.empty())
    network_.stages = kind_of(recipe.model.type).balanced_stages(recipe);
  if (mesh_.layout().pp > 2) ends_ = make_ends(mesh_, sharers());
  if (recipe.parallel.shards_state())
    network_.state = {share_of(mesh_.group(dist::Axes::tp | dist::Axes::cp | dist::Axes::shard)),
                      share_of(mesh_.group(dist::Axes::cp | dist::Axes::shard))};
  if (recipe.parallel.shard == ShardKind::full) {
    dist::Group* const replicas =
        mesh_.size(dist::Axes::replicate) > 1 ? &mesh_.group(dist::Axes::replicate) : nullptr;
    blocks_ = std::make_unique<nn::BlockShards>(
        mesh_.group(dist::Axes::tp | dist::Axes::cp | dist::Axes::shard),
        mesh_.group(dist::Axes::cp | dist::Axes::shard), replicas,
        nn::BlockShards::Options{.keep = recipe.parallel.keeps_gathered(),
                                 .travel = recipe.parallel.reduce,
                                 .at_once = network_.pp != nullptr});
    network_.blocks = blocks_.get();
  }
}

int communicators_of(const dist::Layout& layout) {
  const int cp = layout.cp, dp = layout.dp;
  return (layout.tp > 1) + (cp > 1) + (layout.cp_heads > 1) + (cp * dp > 1) +
         (layout.tp > 1 && cp * dp > 1) + (layout.replicate > 1) + (layout.pp > 1 ? 2 : 0);
}

double communicator_bytes(const Recipe& recipe, int ranks, int of_machine, Device device) {
  if (device == Device::cpu) return 0;
  return kCommunicatorBytes * communicators_of(layout_on_ranks(recipe, ranks, of_machine));
}

void judge_layout(const Recipe& recipe, int ranks, int of_machine) {
  const dist::Layout layout = layout_on_ranks(recipe, ranks, of_machine);
  // Who has samples makes no difference to the network, nor who shares a state: of those who share
  // samples one group will do.
  Recipe of_group = recipe;
  of_group.parallel.shard = ShardKind::none;
  const std::unique_ptr<dist::World> sharers = dist::counted_world(0, ranks / layout.dp);
  const Parallel parallel(of_group, *sharers, of_machine);
  kind_of(recipe.model.type).check_layout(recipe, parallel.network());
}

void check_layout(const Recipe& recipe, int ranks, int of_machine, const Dataset* data) {
  try {
    judge_layout(recipe, ranks, of_machine);
  } catch (const dist::LayoutRefused& refused) {
    for (const dist::Layout& near : layouts_near(recipe, ranks)) {
      Recipe one = recipe;
      one.parallel = near;
      if (!takes(one, ranks, of_machine, data)) continue;
      fail_usage("{}; on {} {} can be", refused.rule(), counted(ranks, "rank"),
                 fmt::join(differing_settings(recipe.parallel, near), " "));
    }
    throw;
  }
}

int idle_data_ranks(const Recipe& recipe, int ranks) {
  const int data_ranks = dist::fit_layout(recipe.parallel.sizes(), ranks).dp;
  return std::max(0, data_ranks - recipe.data.packs);
}

namespace {

/// "'data.packs' is 1 (default), ...": what more packs a step, or fewer who need one, would be.
std::string packs_words(const Recipe& recipe, const std::string& wanted, const char* fewer,
                        bool begun) {
  const std::string packs = describe_setting(recipe, "data.packs");
  if (!begun) return fmt::format("{}, should be {}", packs, wanted);
  return fmt::format("{}, as the run was begun; {}, or set {} in a next stage (--continue)", packs,
                     fewer, wanted);
}

}  // namespace

void warn_of_idle_ranks(const Recipe& recipe, int ranks, bool begun) {
  const int idle = idle_data_ranks(recipe, ranks);
  if (idle == 0) return;
  const int sharers = recipe.parallel.sharers(), data_ranks = ranks / sharers;
  log_warning("{} of {} ranks have no pack in a step, and wait for the others: {}", idle * sharers,
              ranks,
              packs_words(recipe, fmt::format("{}, or a multiple of it", data_ranks),
                          "share each pack by parallel.tp or parallel.cp", begun));
}

void warn_of_idle_stages(const Recipe& recipe, int ranks, bool begun) {
  const RankPacks packs = packs_of_rank(recipe, ranks);
  const int microbatches = packs.all / packs.together, pp = recipe.parallel.pp;
  if (microbatches >= pp) return;
  const int data_ranks = dist::fit_layout(recipe.parallel.sizes(), ranks).dp;
  log_warning(
      "{} a step {} fewer than the {} stages of the pipeline, which wait for each other most of "
      "the time: {}",
      microbatches == 1 ? "1 microbatch" : fmt::format("{} microbatches", microbatches),
      is_or_are(microbatches), pp,
      packs_words(recipe, fmt::format("at least {}", data_ranks * pp * packs.together),
                  "lower parallel.pp", begun));
}

void check_share(const Recipe& recipe, const data::Entry& sample) {
  const dist::Layout& parallel = recipe.parallel;
  if (parallel.hybrid && parallel.cp > 1) return;  // a rank may have no token
  const int parts =
      parallel.tp * parallel.cp * (parallel.cp > 1 ? kind_of(recipe.model.type).cp_ranges() : 1);
  if (const std::int64_t tokens = token_count(sample, recipe.model); tokens < parts)
    fail_usage(
        "sample '{}' has {}, too few for the ranks that share a pack: {}, {}; share it among fewer "
        "ranks, or leave such samples out",
        sample.key, counted(tokens, "token"), describe_setting(recipe, "parallel.tp"),
        describe_setting(recipe, "parallel.cp"));
}

}  // namespace vfm::train

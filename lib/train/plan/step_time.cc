// SPDX-License-Identifier: Apache-2.0
#include "train/plan/step_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/dit/architecture.h"
#include "train/kind.h"
#include "train/plan/links.h"
#include "train/plan/pipeline_time.h"
#include "train/plan/state_time.h"
#include "train/plan/tp_chunks.h"
#include "train/step/parallel.h"

namespace vfm::train {
namespace {

// What is counted with few blocks is that much of the whole in any case: so none is left out that
// fits, and of those that may not the count of all blocks decides (search.cc).
constexpr double kSurely = 0.97;

/// Of all packs of a rank, as full as the fullest.
struct PassTime {
  double tp = 0, cp = 0, all = 0;
};

/// Whether each rank has several key heads, so that a ring's backward has halves of them
/// (nn/ring_attention.h).
bool has_halves(const Recipe& recipe, const Candidate& c) {
  const models::NetworkConfig* network = kind_of(recipe.model.type).network(recipe.model);
  return network == nullptr || network->heads().key_heads > c.tp * c.cp_heads;
}

/// `beside`: the part of what travels in chunks along tp that products hide.
PassTime time_of_passes(const models::Gpu& gpu, int per_node, const Candidate& c,
                        const CountedWork& work, double beside, bool halves) {
  PassTime time;
  double round = 0;
  for (const auto& [what, sent] : work.messages) {
    if (is_of_state(what.first) || what.first == "pp") continue;
    const double seconds =
        message_seconds(gpu, what.second, group_on_nodes(what.first, c, per_node), sent);
    if (what.first == "tp")
      time.tp +=
          seconds * (1 - (what.second == dist::Operation::exchange ? beside : gpu.tp_hidden));
    else
      (what.second == dist::Operation::exchange ? round : time.cp) += seconds;
  }
  const auto attention = work.seconds.find("attention");
  // A CPU's cores compute and exchange by turns.
  const bool hidden = !gpu.cpu && attention != work.seconds.end();
  // In forward nothing is on the way while a rank attends over the last part. In backward half of
  // the own keys hides the last gradients. Without halves these are exposed: of one part in f32,
  // where all parts but one went round in bf16, twice, and their gradients in f32.
  const double parts = std::max(2, c.cp / c.cp_heads),
               last = halves ? 0 : round / (2 * (parts - 1));
  time.cp += std::max(last, round - (hidden ? attention->second * (1 - 1 / parts) : 0));
  time.all = work.computing() + time.tp + time.cp + work.offload;
  return time;
}

/// Of a microbatch of mean cost on each stage; backward computes again what is recomputed.
StageSeconds seconds_of_stages(const std::vector<PassTime>& stages, const Candidate& candidate,
                               double passes, double mean) {
  const bool again = candidate.recompute >= nn::Recompute::block_but_attention;
  StageSeconds seconds;
  for (const PassTime& stage : stages) {
    const double each = mean * stage.all / passes, forward = each / (again ? 4 : 3);
    seconds.forward.push_back(forward);
    seconds.backward.push_back(each - forward);
  }
  return seconds;
}

/// Sums of so many neighbours: packs that go through together.
std::vector<double> together(const std::vector<double>& costs, int packs) {
  std::vector<double> sums;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (i % static_cast<std::size_t>(packs) == 0) sums.push_back(0);
    sums.back() += costs[i] / packs;
  }
  return sums;
}

}  // namespace

double StepTime::total() const {
  double sum = 0;
  for (const auto& [name, seconds] : terms)
    sum += seconds;
  return sum;
}

double StepTime::of(std::string_view term) const {
  for (const auto& [name, seconds] : terms)
    if (name == term) return seconds;
  return 0;
}

double PackSpread::mean() const {
  return std::accumulate(costs.begin(), costs.end(), 0.0) / static_cast<double>(costs.size());
}

double PackSpread::slowest(int packs, int dp) const {
  // As many steps as the epoch has; of a short epoch one, that begins again where it ends.
  constexpr std::size_t kMostPacks = std::size_t{1} << 20;
  const auto step = static_cast<std::size_t>(packs);
  const std::size_t steps =
      std::max<std::size_t>(1, std::min(costs.size(), std::max(step, kMostPacks)) / step);
  std::vector<double> ranks(static_cast<std::size_t>(dp));
  double sum = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    std::ranges::fill(ranks, 0.0);
    for (std::size_t p = 0; p < step; ++p)
      ranks[p % ranks.size()] += costs[(i * step + p) % costs.size()];
    sum += *std::ranges::max_element(ranks);
  }
  return sum / static_cast<double>(steps);
}

std::vector<double> PackSpread::fullest_rank(int packs, int dp) const {
  std::vector<double> fullest;
  double most = -1;
  for (int rank = 0; rank < dp; ++rank) {
    std::vector<double> own;
    for (int pack = rank; pack < packs; pack += dp)
      own.push_back(costs[static_cast<std::size_t>(pack) % costs.size()]);
    const double sum = std::accumulate(own.begin(), own.end(), 0.0);
    if (sum > most) most = sum, fullest = std::move(own);
  }
  return fullest;
}

LayoutCost::LayoutCost(const Recipe& recipe, const std::vector<data::Entry>& pack,
                       const models::Gpu& gpu, int per_node, PackSpread spread)
    : recipe_(recipe),
      pack_(pack),
      gpu_(gpu),
      per_node_(per_node),
      spread_(std::move(spread)),
      work_(std::make_unique<PassWork>(recipe, pack, gpu, per_node)),
      memory_(std::make_unique<LayoutMemory>(recipe, pack, work_->cuts(), gpu.device())) {}

LayoutCost::~LayoutCost() = default;

StepTime LayoutCost::time_of(const Candidate& c, const std::vector<StageWork>& stages,
                             Pipelines pipelines) const {
  const int packs = recipe_.data.packs, own = c.packs_of_rank(packs);
  const double passes = std::max(1.0, static_cast<double>(own) / c.micro_packs);
  const double mean = spread_.mean() * packs / c.dp / own,
               slowest = spread_.slowest(packs, c.dp) / own;
  const Recipe recipe = c.of(recipe_);
  const TpTime tp = tp_time(recipe, gpu_, group_on_nodes("tp", c, per_node_), c.tp_chunks);
  const double beside = c.tp_chunks > 1 ? 1 - tp.exposed / tp.sent : 0;
  const bool halves = has_halves(recipe_, c);
  std::vector<PassTime> passing;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    passing.push_back(time_of_passes(gpu_, per_node_, c, stages[i].all, beside, halves));
    if (passing[i].all > passing[longest].all) longest = i;
  }
  const StageWork& work = stages[longest];
  const PassTime& pass = passing[longest];
  StepTime time;
  const auto add = [&](const char* term, double seconds) {
    if (seconds > 0) time.terms.emplace_back(term, seconds);
  };
  for (const char* term : {"products", "attention", "convolutions", "element-wise", "gaps"})
    if (const auto found = work.all.seconds.find(term); found != work.all.seconds.end())
      add(term, mean * found->second);
  add("tp", mean * pass.tp);
  add("cp", mean * pass.cp);
  add("offload", mean * work.all.offload);
  double uneven = (slowest - mean) * pass.all;
  if (c.pp > 1 && pipelines == Pipelines::bound) {
    const auto shortest = std::ranges::min_element(passing, {}, &PassTime::all);
    add("bubble", (c.pp - 1.0) / c.vpp * mean * shortest->all / passes);
  } else if (c.pp > 1) {
    const PipelineShape shape{c.pp, c.vpp, recipe.parallel.ahead};
    StageSeconds seconds = seconds_of_stages(passing, c, passes, mean);
    const int count = static_cast<int>(std::ceil(passes));
    const double still = pipeline_seconds(shape, seconds, count);
    for (const SentMessages& streams : work_->streams(c))
      seconds.messages.push_back(message_seconds(gpu_, dist::Operation::send,
                                                 group_on_nodes("pp", c, per_node_), streams));
    const double sent = pipeline_seconds(shape, seconds, count);
    add("stages", sent - still);
    add("bubble", still - mean * pass.all);
    // An order of unequal packs is looked for; of very many it makes little difference.
    constexpr int kMostOrdered = 256;
    const bool unequal =
        std::ranges::any_of(spread_.costs, [&](double cost) { return cost != spread_.costs[0]; });
    if (pipelines == Pipelines::ordered && unequal && count <= kMostOrdered) {
      std::vector<double> costs = together(spread_.fullest_rank(packs, c.dp), c.micro_packs);
      for (double& cost : costs)
        cost /= mean;
      uneven = pipeline_seconds(shape, seconds, costs) - sent;
    }
  }
  add("uneven packs", uneven);
  Meanwhile meanwhile{gpu_.cpu ? 0 : mean * work.all.computing(), passes, c.vpp};
  meanwhile.graphs =
      may_be_graphs(recipe.model, c.recompute, c.sharers() > 1 || c.shard == ShardKind::full);
  const StateTime state = state_time(gpu_, per_node_, c, work, meanwhile);
  add("gradients", state.gradients);
  add("shards", state.shards);
  add("optimizer", work.all.optimizer);
  return time;
}

/// Sent would be what all blocks compute alike of each sample, and learned positions of the tokens
/// that a rank has, as wide as each tensor of the stream; all of it f32.
Conditioning LayoutCost::conditioning(const Candidate& c) const {
  const std::vector<StageWork> stages = work_->few(c);
  const models::NetworkConfig* network = kind_of(recipe_.model.type).network(recipe_.model);
  const double passes = c.passes(recipe_.data.packs);
  if (network == nullptr) return {passes * stages[0].conditioning, 0};
  const models::Architecture& architecture = *network->architecture;
  const SentMessages& stream = work_->streams(c).front();
  const double of_sample = static_cast<double>(architecture.shared_values(*network)),
               samples = static_cast<double>(pack_.size()) * c.micro_packs,
               positions = models::has_tables(*network) ? stream.bytes / stream.calls : 0;
  const SentMessages sent{passes, passes * (4 * samples * of_sample + positions)};
  if (sent.bytes == 0) return {passes * stages[0].conditioning, 0};
  const GroupOnNodes group = group_on_nodes("pp", c, per_node_);
  // And the gradients of it back.
  return {passes * stages[0].conditioning,
          2 * message_seconds(gpu_, dist::Operation::send, group, sent)};
}

double LayoutCost::allowance_of(const Candidate& c) const {
  if (gpu_.cpu) return 0;
  return kCommunicatorBytes * communicators_of(c);
}

StepTime LayoutCost::time(const Candidate& candidate) const {
  return time_of(candidate, work_->few(candidate), Pipelines::even);
}

StepTime LayoutCost::least_time(const Candidate& candidate) const {
  return time_of(candidate, work_->few(candidate), Pipelines::bound);
}

Costed LayoutCost::at_least(const Candidate& candidate) const {
  Costed costed;
  costed.candidate = candidate;
  costed.allowance = allowance_of(candidate);
  costed.need = memory_->at_least(candidate);
  costed.fits = kSurely * costed.memory() <= gpu_.usable();
  costed.at_least = candidate.pp == 1;
  return costed;
}

Costed LayoutCost::of(const Candidate& candidate, bool whole) const {
  Costed costed;
  costed.candidate = candidate;
  costed.whole = whole;
  costed.allowance = allowance_of(candidate);
  const bool exact = whole || memory_->knows_whole(candidate);
  const auto fits = [&] { return (exact ? 1 : kSurely) * costed.memory() <= gpu_.usable(); };
  if (!exact) {
    costed.need = memory_->state(candidate);
    costed.state_alone = !fits();
    if (costed.state_alone) return costed;
  }
  costed.need = exact ? memory_->whole(candidate) : memory_->few(candidate);
  costed.fits = fits();
  if (!costed.fits) return costed;
  const std::vector<StageWork> stages = whole ? work_->whole(candidate) : work_->few(candidate);
  costed.time = time_of(candidate, stages, whole ? Pipelines::ordered : Pipelines::even);
  return costed;
}

}  // namespace vfm::train

// SPDX-License-Identifier: Apache-2.0
#include "train/plan/step_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "train/kind.h"
#include "train/plan/links.h"

namespace vfm::train {
namespace {

/// Where the recipe's kind has its number of blocks; null: it has none, and is counted whole.
int* blocks_of(Recipe& recipe) {
  if (recipe.model.type == models::network_type_name(recipe.model.dit.type))
    return &recipe.model.dit.num_layers;
  return recipe.model.type == "autoregressive" ? &recipe.model.decoder.num_layers : nullptr;
}

constexpr double MemoryNeed::*kKinds[] = {&MemoryNeed::weights,      &MemoryNeed::gradients,
                                          &MemoryNeed::moments,      &MemoryNeed::average,
                                          &MemoryNeed::host,         &MemoryNeed::pinned,
                                          &MemoryNeed::activations,  &MemoryNeed::load,
                                          &MemoryNeed::construction, &MemoryNeed::save};

/// The sort of a line of models::predict().
std::string term_of(std::string_view line) {
  for (const char* term : {"products", "attention", "convolutions", "gaps"})
    if (line.starts_with(term)) return term;
  return "element-wise";
}

/// Communicators that a rank's tensors go by: of tp; of cp, or its two parts; of those who sum
/// gradients of parts, and of whole weights; of stages one a direction.
int groups_of(const Candidate& c) {
  const bool both = c.cp > 1 && c.cp_kind == models::CpKind::all_to_all_ring;
  return (c.tp > 1) + (c.cp > 1) + (both ? 1 : 0) + (c.cp * c.dp > 1) +
         (c.tp > 1 && c.cp * c.dp > 1) + (c.pp > 1 ? 2 : 0);
}

/// Of what ranks of an axis send: to whom the time belongs.
std::string term_of_axis(std::string_view axis) {
  if (axis == "tp") return "tp";
  return axis.starts_with("cp") && axis.find("dp") == std::string_view::npos ? "cp" : "gradients";
}

/// On as few ranks as have the same parts: of those with other samples two.
Candidate counted_ranks(Candidate candidate) {
  candidate.pp = candidate.vpp = 1;
  candidate.shard = ShardKind::none;
  candidate.dp = std::min(2, candidate.dp);
  return candidate;
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

/// What was counted: sums that grow with the number of blocks.
struct LayoutCost::Counted {
  std::map<std::string, double> seconds;  // of the packs, by term
  double optimizer = 0, offload = 0;
  std::map<std::pair<std::string, dist::Operation>, SentMessages> messages;
  MemoryNeed need;

  void add(const Counted& more, double times) {
    for (const auto& [term, value] : more.seconds)
      seconds[term] += times * value;
    optimizer += times * more.optimizer;
    offload += times * more.offload;
    for (const auto& [what, sent] : more.messages) {
      messages[what].calls += times * sent.calls;
      messages[what].bytes += times * sent.bytes;
    }
    for (double MemoryNeed::*const kind : kKinds)
      need.*kind += times * more.need.*kind;
  }
};

LayoutCost::LayoutCost(const Recipe& recipe, const std::vector<data::Entry>& pack,
                       const models::Gpu& gpu, int per_node, PackSpread spread)
    : recipe_(recipe), pack_(pack), gpu_(gpu), per_node_(per_node), spread_(std::move(spread)) {}

/// With `own` packs a rank.
Recipe LayoutCost::counted_recipe(const Candidate& candidate, int layers, int own) const {
  const Candidate one = counted_ranks(candidate);
  Recipe recipe = one.of(recipe_);
  recipe.data.packs = one.dp * own;
  if (int* const blocks = blocks_of(recipe)) *blocks = layers;
  return recipe;
}

LayoutCost::Counted LayoutCost::count_memory(const Candidate& candidate, int layers,
                                             const std::vector<data::Entry>& pack, int own) const {
  Counted counted;
  counted.need =
      memory_need(counted_recipe(candidate, layers, own), counted_ranks(candidate).gpus(),
                  candidate.recompute, Device::cuda, pack);
  return counted;
}

LayoutCost::Counted LayoutCost::count_time(const Candidate& candidate, int layers) const {
  const Candidate one = counted_ranks(candidate);
  Counted counted;
  const int own = candidate.packs_of_rank(recipe_.data.packs);
  StepWork work = step_work(counted_recipe(candidate, layers, own), one.gpus(), one.recompute,
                            Device::cuda, pack_);
  for (const models::TimeLine& line : models::predict(gpu_, work.packs))
    counted.seconds[term_of(line.name)] += line.seconds;
  counted.optimizer = models::sum_of("", models::predict(gpu_, {}, work.optimizer)).seconds;
  counted.offload = models::copy_time(gpu_, work.copies).exposed;
  // A sum sends (k-1)/k of its bytes twice, k ranks.
  for (auto& [what, sent] : work.messages) {
    if (term_of_axis(what.first) != "gradients") continue;
    const double here = group_on_nodes(what.first, one, per_node_).ranks,
                 there = group_on_nodes(what.first, candidate, per_node_).ranks;
    sent.bytes *= (there - 1) / there * here / (here - 1);
  }
  counted.messages = std::move(work.messages);
  return counted;
}

StepTime LayoutCost::time_of(const Candidate& c, const Counted& all, const MemoryNeed& need) const {
  const int packs = recipe_.data.packs, own = c.packs_of_rank(packs);
  const double passes = std::max(1.0, static_cast<double>(own) / c.micro_packs);
  const double mean = spread_.mean() * packs / c.dp / own,
               slowest = spread_.slowest(packs, c.dp) / own;
  StepTime time;
  const auto add = [&](const char* term, double seconds) {
    if (seconds > 0) time.terms.emplace_back(term, seconds);
  };
  const auto second = [&](const char* term) {
    const auto found = all.seconds.find(term);
    return found == all.seconds.end() ? 0.0 : std::max(0.0, found->second);
  };
  double pass = 0;  // of all packs
  for (const char* term : {"products", "attention", "convolutions", "element-wise", "gaps"}) {
    pass += second(term);
    add(term, mean * second(term));
  }
  const double computing = pass;
  double exchanged = 0, tp = 0, cp = 0, round = 0, gradients = 0, messages = 1;
  for (const auto& [what, sent] : all.messages) {
    const double seconds =
        message_seconds(gpu_, what.second, group_on_nodes(what.first, c, per_node_), sent);
    const std::string term = term_of_axis(what.first);
    if (term == "tp") tp += seconds * (1 - gpu_.tp_hidden);
    if (term == "cp") (what.second == dist::Operation::exchange ? round : cp) += seconds;
    if (term == "gradients") gradients += seconds, messages = std::max(messages, sent.calls);
  }
  // One part of the keys is here at first, and the last one hides nothing.
  cp += std::max(round / std::max(2, c.cp), round - second("attention"));
  exchanged = tp + cp;
  pass += exchanged + all.offload;
  add("tp", mean * tp);
  add("cp", mean * cp);
  add("offload", mean * all.offload);
  if (c.pp > 1) {
    const double rows = static_cast<double>(recipe_.data.tokens) * c.micro_packs / (c.tp * c.cp);
    const SentMessages stages{2 * passes * c.vpp,
                              2 * passes * c.vpp * 4 * rows * recipe_.model.dit.width()};
    const double sent =
        message_seconds(gpu_, dist::Operation::send, group_on_nodes("pp", c, per_node_), stages);
    add("stages", sent);
    add("bubble", (c.pp - 1.0) / c.vpp / passes * (mean * pass + sent));
  }
  add("uneven packs", (slowest - mean) * pass);
  const bool graphs = kind_of(recipe_.model.type).has_graphs() && !c.offload &&
                      c.tp * c.cp * c.pp == 1 && c.shard == ShardKind::none;
  const double backward = graphs ? 0 : 2.0 / 3 * computing / passes;
  if (c.shard == ShardKind::none)
    add("gradients", std::max(gradients / messages, gradients - backward));
  else
    add("shards", shard_seconds(gpu_, c, per_node_, recipe_, need, computing));
  const double parts = c.shard == ShardKind::none ? 1 : c.dp * c.cp;
  add("optimizer", all.optimizer / parts);
  return time;
}

/// `count(layers)` of a stage: of two blocks, and as often as there are more what the third adds.
template <class Count>
LayoutCost::Counted LayoutCost::of_blocks(const Candidate& candidate, bool whole,
                                          const Count& count) const {
  Recipe recipe = recipe_;
  const int* const blocks = blocks_of(recipe);
  constexpr int kFew = 2;
  const int stage = blocks == nullptr ? 0 : std::max(1, *blocks / candidate.pp);
  if (whole || stage <= kFew + 1) return count(stage);
  Counted all = count(kFew), block = count(kFew + 1);
  block.add(all, -1);
  all.add(block, stage - kFew);
  return all;
}

/// Of many passes a step three are counted: each more adds its batches, which wait from the begin
/// of the step before.
MemoryNeed LayoutCost::memory_of(const Candidate& candidate, bool whole,
                                 const std::vector<data::Entry>& pack) const {
  constexpr int kPasses = 3, kLayers = 2;
  const int own = candidate.packs_of_rank(recipe_.data.packs), each = candidate.micro_packs,
            counted = std::min(own, kPasses * each);
  Counted all = of_blocks(
      candidate, whole, [&](int layers) { return count_memory(candidate, layers, pack, counted); });
  all.need = on_stage(all.need, candidate, recipe_);
  if (own > counted && !pack.empty()) {
    Counted more = count_memory(candidate, kLayers, pack, counted);
    more.add(count_memory(candidate, kLayers, pack, counted - each), -1);
    all.add(more, static_cast<double>(own - counted) / each);
  }
  return all.need;
}

StepTime LayoutCost::time(const Candidate& candidate) const {
  const Counted work =
      of_blocks(candidate, false, [&](int layers) { return count_time(candidate, layers); });
  return time_of(candidate, work, memory_of(candidate, false, {}));
}

Costed LayoutCost::of(const Candidate& candidate, bool whole) const {
  Costed costed;
  costed.candidate = candidate;
  costed.whole = whole;
  costed.allowance = kCommunicatorBytes * groups_of(candidate);
  const auto fits = [&] { return costed.memory() <= gpu_.usable(); };
  if (!whole) {
    costed.need = memory_of(candidate, false, {});
    costed.state_alone = !fits();
    if (costed.state_alone) return costed;
  }
  costed.need = memory_of(candidate, whole, pack_);
  costed.fits = fits();
  if (!costed.fits) return costed;
  const Counted work =
      of_blocks(candidate, whole, [&](int layers) { return count_time(candidate, layers); });
  costed.time = time_of(candidate, work, costed.need);
  return costed;
}

}  // namespace vfm::train

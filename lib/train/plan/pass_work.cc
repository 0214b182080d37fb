// SPDX-License-Identifier: Apache-2.0
#include "train/plan/pass_work.h"

#include <algorithm>
#include <numeric>

#include "models/predict.h"
#include "train/cost/in_flight.h"
#include "train/plan/links.h"
#include "train/step/parallel.h"

namespace vfm::train {
namespace {

using dist::Operation;

/// The sort of a line of models::predict().
std::string sort_of(std::string_view line) {
  for (const char* term : {"products", "attention", "convolutions", "gaps"})
    if (line.starts_with(term)) return term;
  return "element-wise";
}

/// The recipe of a candidate with these blocks of each chunk; with one chunk without a pipeline.
Recipe counted_recipe(const Recipe& recipe, const Candidate& candidate,
                      const std::vector<int>& chunks, int packs) {
  Recipe counted = candidate.of(recipe);
  counted.data.packs = candidate.dp * packs;
  if (int* const blocks = blocks_of(counted))
    *blocks = std::accumulate(chunks.begin(), chunks.end(), 0);
  if (candidate.pp > 1) counted.parallel.stages = chunks;
  return counted;
}

std::vector<data::Entry> times(const std::vector<data::Entry>& pack, int packs) {
  std::vector<data::Entry> samples;
  for (int i = 0; i < packs; ++i)
    samples.insert(samples.end(), pack.begin(), pack.end());
  return samples;
}

/// Sums and gathers of k ranks send (k-1)/k of their bytes: what `here` ranks sent, of `there`.
void scale_ranks(SentMessages& sent, double here, double there) {
  if (here > 1) sent.bytes *= (there - 1) / there * here / (here - 1);
}

/// Those of the messages that are of state, or the others.
PlanMessages part(const PlanMessages& messages, bool state) {
  PlanMessages some;
  for (const auto& [what, sent] : messages)
    if (is_of_state(what.first) == state) some[what] = sent;
  return some;
}

}  // namespace

void CountedWork::divide(double parts) {
  for (auto& [term, value] : seconds)
    value /= parts;
  optimizer /= parts, offload /= parts;
  for (auto& [what, sent] : messages)
    sent.calls /= parts, sent.bytes /= parts;
}

void CountedWork::add(const CountedWork& more, double times) {
  for (const auto& [term, value] : more.seconds)
    seconds[term] += times * value;
  optimizer += times * more.optimizer;
  offload += times * more.offload;
  for (const auto& [what, sent] : more.messages) {
    messages[what].calls += times * sent.calls;
    messages[what].bytes += times * sent.bytes;
  }
}

double CountedWork::computing() const {
  double sum = 0;
  for (const auto& [term, value] : seconds)
    sum += value;
  return sum;
}

bool is_of_state(std::string_view axes) {
  for (const char* axis : {"dp", "shard", "replicate"})
    if (axes.find(axis) != std::string_view::npos) return true;
  return axes.starts_with("tp+");  // of what all stages have
}

/// Of one rank, with that many packs; without messages between stages.
CountedWork PassWork::count(const Candidate& candidate, const std::vector<int>& chunks, int packs,
                            int rank) const {
  const Recipe recipe = counted_recipe(recipe_, candidate, chunks, packs);
  StepWork work =
      step_work(recipe, candidate.gpus(), candidate.recompute, gpu_.device(), pack_, rank);
  CountedWork counted;
  for (const models::TimeLine& line : models::predict(gpu_, work.packs))
    counted.seconds[sort_of(line.name)] += line.seconds;
  counted.optimizer = models::sum_of("", models::predict(gpu_, {}, work.optimizer)).seconds;
  counted.offload = models::copy_time(gpu_, work.copies).exposed;
  counted.messages = std::move(work.messages);
  for (const Operation operation : {Operation::send, Operation::receive})
    counted.messages.erase({"pp", operation});
  return counted;
}

PassWork::PassWork(const Recipe& recipe, const std::vector<data::Entry>& pack,
                   const models::Gpu& gpu, int per_node)
    : recipe_(recipe),
      pack_(pack),
      gpu_(gpu),
      per_node_(per_node),
      cuts_(recipe),
      few_(cuts_.few(2)) {
  Recipe copy = recipe;
  counted_blocks_ = blocks_of(copy) == nullptr ? 1 : few_.less;
}

/// Passes of the fullest rank of a stage, without what concerns the state.
CountedWork PassWork::count_pass(const Candidate& one, const std::vector<int>& chunks, int passes,
                                 int stage) const {
  const Recipe recipe = counted_recipe(recipe_, one, chunks, one.micro_packs);
  const int rank = fullest_rank(recipe, one.gpus(), times(pack_, one.micro_packs));
  CountedWork work = count(one, chunks, passes * one.micro_packs, stage * one.tp * one.cp + rank);
  work.messages = part(work.messages, false);
  work.optimizer = 0;
  return work;
}

PassWork::Local& PassWork::local(const Candidate& c, bool later, bool stages) {
  const Candidate one = c.of_pass();
  Local& local = locals_[one];
  const double grows = few_.more - few_.less;
  if (local.two.seconds.empty()) {
    local.two = count_pass(one, {few_.less}, 1, 0);
    local.block = count_pass(one, {few_.more}, 1, 0);
    local.block.add(local.two, -1);
    local.block.divide(grows);
  }
  if (later && !std::exchange(local.has_later, true)) {
    // Two passes less twice the first one.
    local.later_block = count_pass(one, {few_.more}, 2, 0);
    local.later_block.add(local.two, -2);
    local.later_block.add(local.block, -2 * grows);
    local.later = count_pass(one, {few_.less}, 2, 0);
    local.later.add(local.two, -2);
    local.later_block.add(local.later, -1);
    local.later_block.divide(grows);
    local.later.add(local.later_block, -counted_blocks_);
  }
  if (stages && !std::exchange(local.has_stages, true)) count_stages(one, local);
  return local;
}

/// The parts of stages, from pipelines of few blocks.
void PassWork::count_stages(Candidate one, Local& local) const {
  const int less = few_.less;
  const auto staged = [&](const std::vector<int>& chunks, int stage, int vpp = 1) {
    one.vpp = vpp, one.pp = static_cast<int>(chunks.size()) / vpp;
    return count_pass(one, chunks, 1, stage);
  };
  const auto difference = [](CountedWork more, const CountedWork& fewer) {
    more.add(fewer, -1);
    return more;
  };
  local.first = staged({1, less - 1}, 0);
  local.last = staged({less - 1, 1}, 1);
  const std::vector<int> kinds = cuts_.kinds(less);
  if (cuts_.alike()) local.kinds = {{kinds.front(), local.block}};
  for (int i = 1; i + 1 < less; ++i) {
    const int kind = kinds[static_cast<std::size_t>(i)];
    if (local.kinds.contains(kind)) continue;
    local.kinds[kind] =
        i == 1 ? difference(staged({2, less - 2}, 0), local.first)
               : difference(staged({i - 1, 2, less - i - 1}, 1), staged({i - 1, 1, less - i}, 1));
  }
  // A network of fewer blocks has no stages of several chunks.
  constexpr int kLeast = StageCuts::kLeastUnlike;
  if (cuts_.alike() || less >= kLeast) {
    const int blocks = std::max(less, kLeast);
    local.chunk = staged({1, 1, 1, blocks - 3}, 0, 2);
    local.chunk.add(local.first, -1);
    local.chunk.add(local.kinds.at(cuts_.kinds(blocks)[2]), -1);
  }
  local.conditioning = local.first;
  local.conditioning.add(local.last, 1);
  local.conditioning.add(local.two, -1);
  local.conditioning.add(local.chunk, -1);
  for (int i = 1; i + 1 < less; ++i)
    local.conditioning.add(local.kinds.at(kinds[static_cast<std::size_t>(i)]), 1);
  for (auto& [term, seconds] : local.conditioning.seconds)
    seconds = std::max(0.0, seconds);
}

/// Between blocks that are alike always the same tensors pass.
const std::vector<SentMessages>& PassWork::streams(const Candidate& c) {
  auto [found, fresh] = streams_.try_emplace({c.of_pass(), c.pp, c.vpp});
  std::vector<SentMessages>& sent = found->second;
  if (!fresh) return sent;
  const int boundaries = c.pp * c.vpp - 1;
  Candidate one = c.of_pass();
  one.pp = cuts_.alike() ? 2 : c.pp, one.vpp = cuts_.alike() ? 1 : c.vpp;
  const std::vector<int> chunks = cuts_.alike() ? std::vector{1, 1} : cuts_.chunks(one.pp, one.vpp);
  const Recipe recipe = counted_recipe(recipe_, one, chunks, one.micro_packs);
  const int rank = fullest_rank(recipe, one.gpus(), times(pack_, one.micro_packs));
  sent.resize(static_cast<std::size_t>(boundaries));
  for (int stage = 0; stage < (cuts_.alike() ? 1 : one.pp); ++stage) {
    int chunk = stage;
    const InFlight measured = in_flight(recipe, one.gpus(), one.recompute, gpu_.device(), pack_,
                                        stage * one.tp * one.cp + rank);
    for (const ChunkInFlight& there : measured.chunks) {
      if (chunk < boundaries) sent[static_cast<std::size_t>(chunk)] = there.sent;
      chunk += one.pp;
    }
  }
  if (cuts_.alike()) std::ranges::fill(sent, sent.front());
  return sent;
}

/// On two ranks that share a state, of two such groups where there are several.
const PassWork::State& PassWork::state(const Candidate& c) {
  const bool replicas = c.replicate > 1, shared = c.shard != ShardKind::none,
             reshard = !c.keeps_gathered() && c.pp == 1;
  State& state = states_[{c.tp, c.shard, reshard, replicas}];
  if (!state.rest.seconds.empty()) return state;
  Candidate one({.tp = c.tp, .dp = 2});
  one.shard = c.shard;
  if (!reshard) one.reshard = dist::Reshard::never;
  if (replicas) one.dp = 4, one.replicate = 2;
  state.ranks = shared ? 2 : one.dp;
  const auto counted = [&](int blocks, int packs) {
    CountedWork work = count(one, {blocks}, packs, 0);
    work.messages = part(work.messages, true);
    return work;
  };
  const double grows = few_.more - few_.less;
  state.rest = counted(few_.less, 1);
  state.block = counted(few_.more, 1);
  state.block.add(state.rest, -1);
  state.block.divide(grows);
  state.later_block = counted(few_.more, 2);
  state.later_block.add(counted(few_.less, 2), -1);
  state.later_block.divide(grows);
  state.later_block.add(state.block, -1);
  state.rest.add(state.block, -counted_blocks_);
  return state;
}

/// The messages of state, on as many ranks as the candidate has, and the optimizer.
void PassWork::add_state(const Candidate& c, StageWork& work) {
  const State& counted = state(c);
  const double blocks = work.weights, later = c.passes(recipe_.data.packs) - 1;
  const double shared = c.shard == ShardKind::none ? 1 : c.state_ranks() / counted.ranks;
  Candidate here({.tp = c.tp, .dp = 2});
  here.shard = c.shard;
  if (c.replicate > 1) here.dp = 4, here.replicate = 2;
  const auto add = [&](const CountedWork& more, double times, bool of_block) {
    work.all.optimizer += times * more.optimizer / shared;
    for (const auto& [what, sent] : more.messages) {
      // Ranks of cp have the same weights as well.
      SentMessages all{times * sent.calls, times * sent.bytes};
      scale_ranks(all, group_on_nodes(what.first, here, per_node_).ranks,
                  group_on_nodes(what.first, c, per_node_).ranks);
      if (what.first == "replicate") all.bytes /= shared;
      for (PlanMessages* messages : {&work.all.messages, &work.of_blocks}) {
        if (messages == &work.of_blocks && !of_block) continue;
        (*messages)[what].calls += all.calls;
        (*messages)[what].bytes += all.bytes;
      }
    }
  };
  const bool by_block = c.shard == ShardKind::full;
  add(counted.rest, 1, false);
  add(counted.block, blocks, by_block);
  // A stage gathers and sums once a step.
  if (by_block && later > 0 && c.pp == 1) {
    CountedWork more;
    more.messages = counted.later_block.messages;
    add(more, later * blocks, true);
  }
}

/// What blocks that are gathered compute more, or less: copies and sums of a rank's own part of
/// each gradient, in place of what every rank adds to the whole.
void PassWork::add_work_of_shards(const Candidate& c, StageWork& work) {
  if (c.shard != ShardKind::full || c.pp > 1) return;
  Candidate plain = c;
  plain.shard = ShardKind::none, plain.replicate = 1;
  const State &shared = state(c), &whole = state(plain);
  const double later = c.passes(recipe_.data.packs) - 1, parts = c.state_ranks() / shared.ranks;
  CountedWork more;
  more.add(shared.block, 1), more.add(whole.block, -1);
  more.add(shared.later_block, later), more.add(whole.later_block, -later);
  for (const auto& [term, seconds] : more.seconds)
    work.all.seconds[term] += work.blocks * seconds / (term == "element-wise" ? parts : 1);
}

std::vector<StageWork> PassWork::few(const Candidate& c) {
  const int passes = c.passes(recipe_.data.packs);
  const Local& one = local(c, passes > 1, c.pp > 1);
  const std::vector<int>& chunks = cuts_.of(c.pp, c.vpp);
  std::vector<StageWork> stages(static_cast<std::size_t>(c.pp));
  for (int stage = 0; stage < c.pp; ++stage) {
    StageWork& work = stages[static_cast<std::size_t>(stage)];
    const bool first = stage == 0, last = stage + 1 == c.pp;
    std::map<int, int> more;  // blocks by their kinds
    if (c.pp > 1)
      for (const int block : blocks_of_stage(chunks, c.pp, stage)) {
        ++work.blocks;
        if (block > 0 && block + 1 < cuts_.blocks())
          ++more[cuts_.kinds()[static_cast<std::size_t>(block)]];
      }
    else
      work.blocks = cuts_.blocks();
    work.weights = cuts_.weights_of_stage(c.pp, c.vpp, stage);
    CountedWork pass = c.pp == 1 ? one.two : first ? one.first : last ? one.last : one.conditioning;
    if (c.pp == 1) pass.add(one.block, work.blocks - counted_blocks_);
    for (const auto& [kind, count] : more)
      pass.add(one.kinds.at(kind), count);
    // A stage between others has the begin of a chunk, and its end.
    pass.add(one.chunk, c.vpp - (first || last ? 1 : 0));
    work.all.add(pass, passes);
    if (passes > 1) {
      work.all.add(one.later_block, (passes - 1.0) * work.weights);
      if (first) work.all.add(one.later, passes - 1.0);
    }
    work.conditioning = one.conditioning.computing();
    add_work_of_shards(c, work);
    add_state(c, work);
  }
  return stages;
}

std::vector<StageWork> PassWork::whole(const Candidate& c) {
  std::vector<StageWork> stages = few(c);
  Candidate one = c.of_pass();
  one.pp = c.pp, one.vpp = c.vpp;
  const std::vector<int> chunks = cuts_.chunks(c.pp, c.vpp);
  const int own = c.packs_of_rank(recipe_.data.packs);
  const int rank = fullest_rank(counted_recipe(recipe_, one, chunks, own), one.gpus(),
                                times(pack_, c.micro_packs));
  for (int stage = 0; stage < c.pp; ++stage) {
    StageWork& work = stages[static_cast<std::size_t>(stage)];
    work.all = count(one, chunks, own, stage * one.tp * one.cp + rank);
    work.all.messages = part(work.all.messages, false);
    work.all.optimizer = 0;
    work.of_blocks.clear();
    add_work_of_shards(c, work);
    add_state(c, work);
  }
  return stages;
}

}  // namespace vfm::train

// SPDX-License-Identifier: Apache-2.0
#include "train/plan/pass_work.h"

#include <algorithm>
#include <numeric>

#include "models/predict.h"
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

/// Of one rank, with that many packs; messages between stages apart.
CountedWork PassWork::count(const Candidate& candidate, std::vector<int> chunks, int packs,
                            int rank, SentMessages* stream) const {
  const Recipe recipe = counted_recipe(recipe_, candidate, chunks, packs);
  StepWork work =
      step_work(recipe, candidate.gpus(), candidate.recompute, gpu_.device(), pack_, rank);
  CountedWork counted;
  for (const models::TimeLine& line : models::predict(gpu_, work.packs))
    counted.seconds[sort_of(line.name)] += line.seconds;
  counted.optimizer = models::sum_of("", models::predict(gpu_, {}, work.optimizer)).seconds;
  counted.offload = models::copy_time(gpu_, work.copies).exposed;
  counted.messages = std::move(work.messages);
  for (const Operation operation : {Operation::send, Operation::receive}) {
    const auto found = counted.messages.find({"pp", operation});
    if (found == counted.messages.end()) continue;
    if (operation == Operation::send && stream != nullptr)
      *stream = {1, found->second.bytes / std::max(1.0, found->second.calls)};
    counted.messages.erase(found);
  }
  return counted;
}

PassWork::PassWork(const Recipe& recipe, const std::vector<data::Entry>& pack,
                   const models::Gpu& gpu, int per_node)
    : recipe_(recipe), pack_(pack), gpu_(gpu), per_node_(per_node), cuts_(recipe) {
  Recipe copy = recipe;
  counted_blocks_ = blocks_of(copy) == nullptr ? 1 : 2;
}

PassWork::Local& PassWork::local(const Candidate& c, bool later, bool stages) {
  Candidate one = c;
  one.dp = one.pp = one.vpp = one.replicate = 1;
  one.shard = ShardKind::none;
  one.reshard = true;
  const bool cp = c.cp > 1;
  Local& local = locals_[{c.tp, c.tp_chunks, c.cp, cp ? c.cp_kind : nn::CpKind::gather,
                          cp && c.cp_kind == nn::CpKind::all_to_all_ring ? c.cp_heads : 1,
                          cp && c.hybrid, c.recompute, c.offload, c.micro_packs}];
  const auto counted = [&](const Candidate& of, const std::vector<int>& chunks, int passes,
                           int stage, SentMessages* stream) {
    const Recipe recipe = counted_recipe(recipe_, of, chunks, of.micro_packs);
    const int rank = fullest_rank(recipe, of.gpus(), times(pack_, of.micro_packs));
    CountedWork work =
        count(of, chunks, passes * of.micro_packs, stage * of.tp * of.cp + rank, stream);
    work.messages = part(work.messages, false);
    work.optimizer = 0;
    return work;
  };
  if (local.two.seconds.empty()) {
    local.two = counted(one, {2}, 1, 0, nullptr);
    local.block = counted(one, {3}, 1, 0, nullptr);
    local.block.add(local.two, -1);
  }
  if (later && !std::exchange(local.has_later, true)) {
    // Two passes less twice the first one.
    local.later_block = counted(one, {3}, 2, 0, nullptr);
    local.later_block.add(local.two, -2);
    local.later_block.add(local.block, -2);
    local.later = counted(one, {2}, 2, 0, nullptr);
    local.later.add(local.two, -2);
    local.later_block.add(local.later, -1);
    local.later.add(local.later_block, -counted_blocks_);
  }
  if (stages && !std::exchange(local.has_stages, true)) {
    one.pp = 2;
    local.first = counted(one, {1, 1}, 1, 0, &local.stream);
    local.last = counted(one, {1, 1}, 1, 1, nullptr);
    one.vpp = 2;
    local.chunk = counted(one, {1, 1, 1, 1}, 1, 0, nullptr);
    local.chunk.add(local.first, -1);
    local.chunk.add(local.block, -1);
    local.conditioning = local.first;
    local.conditioning.add(local.last, 1);
    local.conditioning.add(local.two, -1);
    local.conditioning.add(local.chunk, -1);
    for (auto& [term, seconds] : local.conditioning.seconds)
      seconds = std::max(0.0, seconds);
  }
  return local;
}

/// On two ranks that share a state, of two such groups where there are several.
const PassWork::State& PassWork::state(const Candidate& c) {
  const bool replicas = c.replicate > 1, shared = c.shard != ShardKind::none,
             reshard = c.reshard && c.pp == 1;
  State& state = states_[{c.tp, c.shard, reshard, replicas}];
  if (!state.rest.seconds.empty()) return state;
  Candidate one{.tp = c.tp, .dp = 2};
  one.shard = c.shard, one.reshard = reshard;
  if (replicas) one.dp = 4, one.replicate = 2;
  state.ranks = shared ? 2 : one.dp;
  const auto counted = [&](int blocks, int packs) {
    CountedWork work = count(one, {blocks}, packs, 0);
    work.messages = part(work.messages, true);
    return work;
  };
  state.rest = counted(2, 1);
  state.block = counted(3, 1);
  state.block.add(state.rest, -1);
  state.later_block = counted(3, 2);
  CountedWork two = counted(2, 2);
  state.later_block.add(two, -1);
  state.later_block.add(state.block, -1);
  state.rest.add(state.block, -counted_blocks_);
  return state;
}

/// The messages of state, on as many ranks as the candidate has, and the optimizer.
void PassWork::add_state(const Candidate& c, StageWork& work) {
  const State& counted = state(c);
  const double blocks = work.blocks, later = c.passes(recipe_.data.packs) - 1;
  const double shared = c.shard == ShardKind::none ? 1 : c.state_ranks() / counted.ranks;
  Candidate here{.tp = c.tp, .dp = 2};
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
    work.blocks = c.pp == 1 ? cuts_.blocks() : blocks_of_stage(chunks, c.pp, stage);
    CountedWork pass = c.pp == 1 ? one.two : first ? one.first : last ? one.last : one.conditioning;
    const int counted = c.pp == 1 ? counted_blocks_ : first || last ? 1 : 0;
    pass.add(one.block, work.blocks - counted);
    // A stage between others has the begin of a chunk, and its end.
    pass.add(one.chunk, c.vpp - (first || last ? 1 : 0));
    work.all.add(pass, passes);
    if (passes > 1) {
      work.all.add(one.later_block, (passes - 1.0) * work.blocks);
      if (first) work.all.add(one.later, passes - 1.0);
    }
    work.of_streams = one.stream;
    work.conditioning = one.conditioning.computing();
    add_work_of_shards(c, work);
    add_state(c, work);
  }
  return stages;
}

std::vector<StageWork> PassWork::whole(const Candidate& c) {
  std::vector<StageWork> stages = few(c);
  Candidate one = c;
  one.dp = one.replicate = 1;
  one.shard = ShardKind::none;
  one.reshard = true;
  std::vector<int> chunks = cuts_.of(c.pp, c.vpp);
  if (chunks.empty()) chunks = {cuts_.blocks()};
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

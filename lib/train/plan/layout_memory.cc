// SPDX-License-Identifier: Apache-2.0
#include "train/plan/layout_memory.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "train/cost/in_flight.h"
#include "train/step/parallel.h"

namespace vfm::train {
namespace {

// With fewer the buffers of blocks that are gathered are not all in use at once.
constexpr int kFewBlocks = 3;

constexpr double MemoryNeed::*kKinds[] = {&MemoryNeed::weights,      &MemoryNeed::gradients,
                                          &MemoryNeed::moments,      &MemoryNeed::average,
                                          &MemoryNeed::host,         &MemoryNeed::pinned,
                                          &MemoryNeed::activations,  &MemoryNeed::load,
                                          &MemoryNeed::construction, &MemoryNeed::save};

/// a + times (b - c).
MemoryNeed sum_of_needs(MemoryNeed a, double times, const MemoryNeed& b, const MemoryNeed& c) {
  for (double MemoryNeed::*const kind : kKinds)
    a.*kind += times * (b.*kind - c.*kind);
  return a;
}

/// As many ranks as it takes to have the same parts: of those who share no state two.
Candidate with_few_ranks(Candidate candidate) {
  if (candidate.shard != ShardKind::none) candidate.dp /= candidate.replicate;
  candidate.replicate = 1;
  candidate.dp = std::min(2, candidate.dp);
  return candidate;
}

/// The same number of blocks in each chunk.
std::vector<int> evenly(const Candidate& candidate, int blocks) {
  return std::vector<int>(static_cast<std::size_t>(candidate.pp * candidate.vpp), blocks);
}

/// The most bytes of microbatches in flight.
double most_of(const std::vector<std::vector<int>>& in_flight, const std::vector<double>& bytes) {
  double most = 0;
  for (const std::vector<int>& counts : in_flight)
    most = std::max(most, std::inner_product(counts.begin(), counts.end(), bytes.begin(), 0.0));
  return most;
}

}  // namespace

/// The recipe with so many blocks of each chunk, and packs of a rank.
Recipe LayoutMemory::counted_recipe(const Candidate& c, const std::vector<int>& chunks,
                                    int packs) const {
  Recipe recipe = c.of(recipe_);
  recipe.data.packs = c.dp * packs;
  if (int* const blocks = blocks_of(recipe))
    *blocks = std::accumulate(chunks.begin(), chunks.end(), 0);
  recipe.parallel.ahead = 0;  // most_under_way() knows of it
  if (c.pp > 1) recipe.parallel.stages = chunks;
  return recipe;
}

/// Of the packs that go through the network together, unless none does.
int LayoutMemory::rank_of_stage(const Candidate& c, const Recipe& recipe, int stage,
                                bool none) const {
  std::vector<data::Entry> samples;
  for (int i = 0; !none && i < c.micro_packs; ++i)
    samples.insert(samples.end(), pack_.begin(), pack_.end());
  return stage * (c.gpus() / c.pp) + fullest_rank(recipe, c.gpus(), samples);
}

MemoryNeed LayoutMemory::count(const Candidate& c, const std::vector<int>& chunks, int packs,
                               int stage, What what) const {
  const Recipe recipe = counted_recipe(c, chunks, packs);
  return memory_of_rank(recipe, rank_of_stage(c, recipe, stage, what == lasting), c.gpus(),
                        c.recompute, device_, what == lasting ? std::vector<data::Entry>() : pack_,
                        what == passing ? CountedParts::passes : CountedParts::all);
}

LayoutMemory::Place LayoutMemory::place_of(const Candidate& c, int stage) {
  return stage == 0 ? first : stage + 1 == c.pp ? last : middle;
}

/// Of one that shares its state with n - 1 others: the same on all, and a part of the rest, which
/// two and four ranks tell. Of a pipeline a stage at each place, of however many; if blocks are not
/// alike, the stage itself.
MemoryNeed LayoutMemory::state_of_stage(const Candidate& c, int stage) {
  const int ranks = c.state_ranks();
  const std::vector<int> chunks = cuts_.chunks(c.pp, c.vpp);
  const auto blocks = static_cast<double>(blocks_of_stage(chunks, c.pp, stage).size());
  const Place place = place_of(c, stage);
  const auto counted = [&](int some) {
    Candidate one({.tp = c.tp, .dp = some, .pp = c.pp == 1 ? 1 : place == middle ? 3 : 2});
    one.shard = c.shard;
    if (!cuts_.alike()) {
      one.pp = c.pp, one.vpp = c.vpp;
      MemoryNeed& need = states_of_stages_[{c.tp, c.pp, c.vpp, stage, c.shard, some}];
      if (need.weights == 0) need = count(one, chunks, 1, stage, lasting);
      return need;
    }
    std::array<MemoryNeed, 2>& few = states_[{c.tp, c.pp > 1, place, c.shard, some}];
    if (few[0].weights == 0)
      for (std::size_t i = 0; i < 2; ++i)
        few[i] = count(one, evenly(one, kFewBlocks + static_cast<int>(i)), 1,
                       place == first ? 0 : 1, lasting);
    return sum_of_needs(few[0], blocks - kFewBlocks, few[1], few[0]);
  };
  // a + b / n.
  const MemoryNeed half = counted(std::min(2, ranks)), quarter = counted(std::min(4, ranks));
  MemoryNeed need = sum_of_needs(half, 2 - 4.0 / std::max(2, ranks), quarter, half);
  need.activations = need.host = need.pinned = 0;
  return need;
}

/// Without a pipeline. Of many passes a step few are counted: each more adds its batches, which
/// wait from the begin of the step before.
const MemoryNeed& LayoutMemory::pass(const Candidate& c) {
  const int own = c.packs_of_rank(recipe_.data.packs), each = c.micro_packs,
            counted = std::min(own, 3 * each);
  const Candidate one = with_few_ranks(c);
  const auto [found, fresh] = passes_.try_emplace({one, own});
  MemoryNeed& need = found->second;
  if (!fresh) return need;
  const auto count_passes = [&](int blocks, int packs) {
    return count(one, {blocks}, packs, 0, all);
  };
  const FewBlocks few = cuts_.few(std::min(kFewBlocks, cuts_.blocks()));
  const MemoryNeed less = count_passes(few.less, counted);
  need = less;
  if (cuts_.blocks() > few.less)
    need = sum_of_needs(less, few.times(cuts_.blocks()), count_passes(few.more, counted), less);
  if (own > counted)
    need = sum_of_needs(need, static_cast<double>(own - counted) / each, less,
                        count_passes(few.less, counted - each));
  return need;
}

MemoryNeed LayoutMemory::state(const Candidate& candidate) {
  MemoryNeed fullest;
  for (int stage = 0; stage < candidate.pp; ++stage)
    if (const MemoryNeed need = state_of_stage(candidate, stage); need.total() > fullest.total())
      fullest = need;
  return fullest;
}

MemoryNeed LayoutMemory::few(const Candidate& candidate) {
  if (candidate.pp > 1) return of_stages(candidate);
  MemoryNeed need = state(candidate);
  const MemoryNeed& of_pass = pass(candidate);
  need.activations = of_pass.activations;
  need.host = of_pass.host;
  need.pinned = of_pass.pinned;
  return need;
}

MemoryNeed LayoutMemory::at_least(const Candidate& candidate) {
  if (candidate.pp > 1) return of_stages(candidate);
  // What is most at once is the largest of several sums, so no block keeps less than one before.
  MemoryNeed need = state(candidate);
  const Kept& of_pass = kept(candidate);
  need.activations = of_pass.two + (cuts_.blocks() - 2) * of_pass.block;
  return need;
}

/// Of a pass: what it takes with two blocks, and what each more keeps until it comes back. With
/// 'model.offload' that is next to nothing, and with few blocks what is in none of them counts.
const LayoutMemory::Kept& LayoutMemory::kept(const Candidate& c) {
  const auto [found, fresh] = kept_.try_emplace(c.of_pass());
  Kept& kept = found->second;
  if (!fresh) return kept;
  const Candidate one = c.of_pass();
  const FewBlocks few = cuts_.few(c.offload ? kFewBlocks : 2);
  const int grows = few.more - few.less;
  const MemoryNeed less = count(one, {few.less}, c.micro_packs, 0, passing),
                   more = count(one, {few.more}, c.micro_packs, 0, passing);
  kept.block = (more.activations - less.activations) / grows;
  kept.two = less.activations - (few.less - 2) * kept.block;
  kept.pinned = (more.pinned - less.pinned) / grows;
  return kept;
}

/// From stages with one block: what is more with one more microbatch under way is what each keeps.
const LayoutMemory::KeptOfStages& LayoutMemory::kept_of_stages(const Candidate& c) {
  const auto [found, fresh] = kept_of_stages_.try_emplace(c.of_pass());
  KeptOfStages& each = found->second;
  if (!fresh) return each;
  Candidate one = c;
  one.dp = one.vpp = one.replicate = 1;
  one.shard = ShardKind::none;
  const auto counted = [&](int pp, int stage, int passes) {
    one.pp = pp;
    return count(one, evenly(one, 1), passes * c.micro_packs, stage, passing);
  };
  const MemoryNeed two = counted(2, 0, 3);
  each.host = two.host;
  each.batch = (counted(2, 0, 4).activations - two.activations) / 2;
  // Two of three under way, three of four; each step's batches are there twice.
  const auto set = [&](Place place, double less, double more) {
    less -= 6 * each.batch, more -= 8 * each.batch;
    each.each[place] = more - less;
    each.rest[place] = less - 2 * each.each[place];
  };
  set(first, two.activations, counted(3, 0, 4).activations);
  set(middle, counted(3, 1, 3).activations, counted(4, 1, 4).activations);
  // Of the last chunk one is under way at a time.
  each.rest[last] = each.rest[middle];
  each.each[last] = counted(2, 1, 3).activations - 6 * each.batch - each.rest[last];
  return each;
}

/// What a block takes that is gathered: its matrices, and their gradients' buffers.
double LayoutMemory::gathered_block(int tp) {
  const auto [found, fresh] = gathered_.try_emplace(tp);
  if (!fresh) return found->second;
  Candidate one({.tp = tp, .dp = 2, .pp = 2});
  one.recompute = nn::Recompute::block;
  const auto of_block = [&](ShardKind shard) {
    one.shard = shard;
    return count(one, {2, 2}, 2, 0, passing).activations -
           count(one, {1, 1}, 2, 0, passing).activations;
  };
  return found->second = of_block(ShardKind::full) - of_block(ShardKind::none);
}

const std::vector<std::vector<int>>& LayoutMemory::under_way(const Candidate& c, int stage) {
  const PipelineShape shape{c.pp, c.vpp, c.may_be_ahead() ? recipe_.parallel.ahead : 0};
  const int passes = c.passes(recipe_.data.packs);
  auto [found, fresh] = under_way_.try_emplace({c.pp, c.vpp, passes, stage});
  if (fresh) found->second = most_under_way(shape, passes, stage);
  return found->second;
}

/// Of a stage whose blocks are like all others: by what one block of a chunk keeps.
LayoutMemory::StageInFlight LayoutMemory::even_stage(const Candidate& c, int stage) {
  const Kept& of_blocks = kept(c);
  const KeptOfStages& each = kept_of_stages(c);
  const std::vector<int>& chunks = cuts_.of(c.pp, c.vpp);
  StageInFlight there;
  for (int chunk = stage; chunk < c.pp * c.vpp; chunk += c.pp) {
    const Place place = chunk == 0 ? first : chunk + 1 == c.pp * c.vpp ? last : middle;
    const int blocks = chunks[static_cast<std::size_t>(chunk)];
    there.bytes.push_back(each.each[place] + (blocks - 1) * of_blocks.block);
    there.pinned.push_back(blocks * of_blocks.pinned);
  }
  there.batch = each.batch, there.host = each.host;
  there.rest = each.rest[place_of(c, stage)];
  if (c.shard == ShardKind::full)
    there.gathered =
        static_cast<double>(blocks_of_stage(chunks, c.pp, stage).size()) * gathered_block(c.tp);
  return there;
}

/// Of a stage of a network whose blocks are not alike: its chunks are measured, and what it needs
/// besides is what a step of three microbatches has more than they keep.
const LayoutMemory::StageInFlight& LayoutMemory::uneven_stage(const Candidate& c, int stage) {
  const bool sharded = c.shard == ShardKind::full;
  const auto [found, fresh] = in_flight_.try_emplace({c.of_pass(), c.pp, c.vpp, stage, sharded});
  StageInFlight& there = found->second;
  if (!fresh) return there;
  Candidate one = c;
  one.dp = one.replicate = 1;
  one.shard = ShardKind::none;
  const std::vector<int> chunks = cuts_.chunks(c.pp, c.vpp);
  const Recipe recipe = counted_recipe(one, chunks, c.micro_packs);
  const InFlight measured = in_flight(recipe, one.gpus(), c.recompute, device_, pack_,
                                      rank_of_stage(one, recipe, stage, false));
  for (const ChunkInFlight& chunk : measured.chunks) {
    there.bytes.push_back(chunk.kept);
    there.pinned.push_back(chunk.pinned);
  }
  constexpr int kPasses = 3;
  if (sharded) one.dp = 2, one.shard = ShardKind::full;
  const MemoryNeed counted = count(one, chunks, kPasses * c.micro_packs, stage, passing);
  there.host = counted.host;
  there.batch = measured.batch;
  there.rest = counted.activations - 2 * kPasses * there.batch -
               most_of(most_under_way({c.pp, c.vpp}, kPasses, stage), there.bytes);
  return there;
}

/// The fullest stage of a pipeline, by what its schedule has under way.
MemoryNeed LayoutMemory::of_stages(const Candidate& c) {
  const int passes = c.passes(recipe_.data.packs);
  MemoryNeed fullest;
  for (int stage = 0; stage < c.pp; ++stage) {
    const StageInFlight there = cuts_.alike() ? even_stage(c, stage) : uneven_stage(c, stage);
    MemoryNeed need = state_of_stage(c, stage);
    need.host = there.host;
    need.activations = there.rest + 2 * passes * there.batch;
    need.activations += most_of(under_way(c, stage), there.bytes);
    need.activations += there.gathered;
    need.pinned = most_of(under_way(c, stage), there.pinned);
    if (need.total() > fullest.total()) fullest = need;
  }
  return fullest;
}

/// If blocks are alike, stages between others that have as many blocks of each chunk as one before
/// have no more under way than that.
const MemoryNeed& LayoutMemory::whole(const Candidate& c) {
  for (const auto& [known, need] : wholes_)
    if (known == c) return need;
  Recipe recipe = c.of(recipe_);
  const auto add = [&](const MemoryNeed& need) -> const MemoryNeed& {
    return wholes_.emplace_back(c, need).second;
  };
  if (c.pp == 1) return add(memory_need(recipe, c.gpus(), c.recompute, device_, pack_));
  const std::vector<int>& chunks = recipe.parallel.stages = cuts_.of(c.pp, c.vpp);
  std::vector<data::Entry> samples;
  for (int i = 0; i < c.micro_packs; ++i)
    samples.insert(samples.end(), pack_.begin(), pack_.end());
  const int fullest = fullest_rank(recipe, c.gpus(), samples);
  std::set<std::vector<int>> seen;
  MemoryNeed most;
  for (int stage = 0; stage < c.pp; ++stage) {
    std::vector<int> own;
    for (int chunk = stage; chunk < c.pp * c.vpp; chunk += c.pp)
      own.push_back(chunks[static_cast<std::size_t>(chunk)]);
    if (cuts_.alike() && place_of(c, stage) == middle && !seen.insert(own).second) continue;
    const MemoryNeed need = memory_of_rank(recipe, stage * (c.gpus() / c.pp) + fullest, c.gpus(),
                                           c.recompute, device_, pack_);
    if (need.total() > most.total()) most = need;
  }
  return add(most);
}

bool LayoutMemory::knows_whole(const Candidate& candidate) const {
  return std::ranges::any_of(wholes_, [&](const auto& one) { return one.first == candidate; });
}

std::vector<std::vector<int>> most_under_way(const PipelineShape& shape, int microbatches,
                                             int stage) {
  // From the third turn on it is as it was.
  const std::vector<MicrobatchCost> costs(
      static_cast<std::size_t>(std::min(microbatches, 3 * shape.pp * (1 + shape.ahead))));
  const PipelineSchedule schedule = schedule_in_order(shape, costs);
  std::vector<int> counts(static_cast<std::size_t>(shape.vpp));
  std::set<std::vector<int>> most;
  bool rising = false;
  for (const PipelineStep& step : schedule.ranks.at(static_cast<std::size_t>(stage))) {
    int& count = counts[static_cast<std::size_t>(step.chunk)];
    if (step.kind == PipelineStep::Kind::forward) ++count, rising = true;
    if (step.kind != PipelineStep::Kind::backward) continue;
    if (std::exchange(rising, false)) most.insert(counts);
    --count;
  }
  return {most.begin(), most.end()};
}

}  // namespace vfm::train

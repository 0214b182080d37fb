// SPDX-License-Identifier: Apache-2.0
#include "train/plan/layout_memory.h"

#include <algorithm>
#include <numeric>

#include "train/parallel.h"

namespace vfm::train {
namespace {

// With fewer the buffers of blocks that are gathered are not all in use at once.
constexpr int kFewBlocks = 3;

// Of what is added up of a pipeline's activations: what it takes in any case, and what it hardly
// takes more than, with batches of all packs and blocks that are no longer where they were.
constexpr double kSurely = 0.97, kPerhaps = 1.25;

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

}  // namespace

/// Of the first stage or the last one, with so many blocks of each chunk.
MemoryNeed LayoutMemory::count(const Candidate& c, int of_chunk, int packs, bool last,
                               bool with_pack) const {
  Recipe recipe = c.of(recipe_);
  recipe.data.packs = c.dp * packs;
  const int chunks = c.pp * c.vpp;
  if (int* const blocks = blocks_of(recipe)) *blocks = chunks * of_chunk;
  if (c.pp > 1) recipe.parallel.stages.assign(static_cast<std::size_t>(chunks), of_chunk);
  std::vector<data::Entry> samples;
  for (int i = 0; with_pack && i < c.micro_packs; ++i)
    samples.insert(samples.end(), pack_.begin(), pack_.end());
  const int stage = last ? c.pp - 1 : 0,
            rank = stage * (c.gpus() / c.pp) + fullest_rank(recipe, c.gpus(), samples);
  return memory_of_rank(recipe, rank, c.gpus(), c.recompute, device_,
                        with_pack ? pack_ : std::vector<data::Entry>());
}

/// Of each chunk of the first stage or the last one.
double LayoutMemory::blocks_of_end(const Candidate& c, bool last) const {
  if (c.pp == 1) return cuts_.blocks();
  return static_cast<double>(blocks_of_stage(cuts_.of(c.pp, c.vpp), c.pp, last ? c.pp - 1 : 0)) /
         c.vpp;
}

/// Of one that shares its state with n - 1 others: the same on all, and a part of the rest, which
/// two and four ranks tell. A stage is the first or the last one, of however many.
LayoutMemory::Ends LayoutMemory::state_ends(const Candidate& c) {
  const int ranks = c.state_ranks();
  const auto counted = [&](int some) -> const Ends& {
    Ends& ends = states_[{c.tp, c.pp > 1, c.shard, some}];
    if (!ends.empty()) return ends;
    Candidate one{.tp = c.tp, .dp = some, .pp = std::min(2, c.pp)};
    one.shard = c.shard;
    for (const int few : {kFewBlocks, kFewBlocks + 1})
      for (const bool last : {false, true})
        ends.push_back(count(one, few, 1, last, false));
    return ends;
  };
  const Ends &two = counted(std::min(2, ranks)), &four = counted(std::min(4, ranks));
  Ends ends;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto of_blocks = [&](const Ends& few) {
      return sum_of_needs(few[i], blocks_of_end(c, i == 1) * c.vpp - kFewBlocks, few[i + 2],
                          few[i]);
    };
    // a + b / n.
    const MemoryNeed half = of_blocks(two), quarter = of_blocks(four);
    ends.push_back(sum_of_needs(half, 2 - 4.0 / std::max(2, ranks), quarter, half));
  }
  return ends;
}

/// Without a pipeline. Of many passes a step few are counted: each more adds its batches, which
/// wait from the begin of the step before.
const MemoryNeed& LayoutMemory::pass(const Candidate& c) {
  const int own = c.packs_of_rank(recipe_.data.packs), each = c.micro_packs,
            counted = std::min(own, 3 * each);
  const Candidate one = with_few_ranks(c);
  const auto [found, fresh] = passes_.try_emplace(
      {c.tp, c.cp, c.cp > 1 ? c.cp_kind : models::CpKind::gather, c.cp_heads, c.hybrid, c.recompute,
       c.offload, each, c.shard, c.reshard, one.dp > 1, own});
  MemoryNeed& need = found->second;
  if (!fresh) return need;
  const auto count_passes = [&](int blocks, int packs) {
    return count(one, blocks, packs, false, true);
  };
  const double blocks = blocks_of_end(c, false);
  const int few = static_cast<int>(std::min<double>(kFewBlocks, blocks));
  const MemoryNeed less = count_passes(few, counted);
  need = less;
  if (blocks > few) need = sum_of_needs(less, blocks - few, count_passes(few + 1, counted), less);
  if (own > counted)
    need = sum_of_needs(need, static_cast<double>(own - counted) / each, less,
                        count_passes(few, counted - each));
  return need;
}

MemoryNeed LayoutMemory::state(const Candidate& candidate) {
  MemoryNeed fullest;
  for (MemoryNeed end : state_ends(candidate)) {
    end.activations = end.host = end.pinned = 0;
    if (end.total() > fullest.total()) fullest = end;
  }
  return fullest;
}

MemoryNeed LayoutMemory::few(const Candidate& candidate) {
  MemoryNeed need = candidate.pp > 1 ? sum_up(candidate) : state(candidate);
  if (candidate.pp > 1) {
    need.activations *= kPerhaps;
    return need;
  }
  const MemoryNeed& passing = pass(candidate);
  need.activations = passing.activations;
  need.host = passing.host;
  need.pinned = passing.pinned;
  return need;
}

/// Of a pass: what it takes with one block, and what each more keeps until it comes back. With
/// 'model.offload' blocks keep next to nothing, and what is in no block counts.
const LayoutMemory::Kept& LayoutMemory::kept(const Candidate& c) {
  const auto [found, fresh] =
      kept_.try_emplace({c.tp, c.cp, c.cp > 1 ? c.cp_kind : models::CpKind::gather, c.cp_heads,
                         c.hybrid, c.recompute, c.offload, c.micro_packs});
  Kept& kept = found->second;
  if (!fresh) return kept;
  Candidate one = c;
  one.dp = one.pp = one.vpp = one.replicate = 1;
  one.shard = ShardKind::none;
  if (!c.offload) {
    kept.one = count(one, 1, c.micro_packs, false, true).activations;
    kept.block = count(one, 2, c.micro_packs, false, true).activations - kept.one;
    return kept;
  }
  const MemoryNeed few = count(one, kFewBlocks, c.micro_packs, false, true),
                   more = count(one, kFewBlocks + 1, c.micro_packs, false, true);
  kept.block = more.activations - few.activations;
  kept.one = few.activations - (kFewBlocks - 1) * kept.block;
  kept.pinned = more.pinned - few.pinned;
  one.pp = 2;
  kept.more = count(one, kFewBlocks, 2 * c.micro_packs, false, true).activations -
              count(one, kFewBlocks, c.micro_packs, false, true).activations;
  return kept;
}

MemoryNeed LayoutMemory::at_least(const Candidate& c) {
  MemoryNeed need = sum_up(c);
  need.activations *= kSurely;
  return need;
}

MemoryNeed LayoutMemory::sum_up(const Candidate& c) {
  MemoryNeed need = state(c);
  const int passes = c.passes(recipe_.data.packs);
  const int ahead = c.may_be_ahead() ? recipe_.parallel.ahead : 0;
  const int most = c.vpp == 1 ? (c.pp - 1) * (1 + ahead) + 1 : (c.vpp + 1) * c.pp - 1;
  const int chunks = std::min(passes * c.vpp, most);
  const Kept& of_pass = kept(c);
  const double blocks = chunks * blocks_of_end(c, false);
  need.activations = of_pass.one + (blocks - 1) * of_pass.block + (chunks - 1) * of_pass.more;
  need.pinned = blocks * of_pass.pinned;
  if (c.pp > 1 && c.shard == ShardKind::full) {
    // A stage has all its matrices while it computes, and gradients of f32.
    Candidate plain = c;
    plain.shard = ShardKind::none, plain.replicate = 1;
    const auto size = static_cast<double>(dtype_size(recipe_.compute()));
    need.activations += (1 + size / 4) * state(plain).gradients;
  }
  return need;
}

MemoryNeed LayoutMemory::whole(const Candidate& candidate) const {
  return memory_need(candidate.of(recipe_), candidate.gpus(), candidate.recompute, device_, pack_);
}

}  // namespace vfm::train

// SPDX-License-Identifier: Apache-2.0
#include "train/plan/layout_memory.h"

#include <algorithm>
#include <numeric>

#include "train/parallel.h"

namespace vfm::train {
namespace {

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

/// With all blocks: of two sizes what a block adds.
LayoutMemory::Ends LayoutMemory::counted_ends(const Candidate& c, int packs, bool with_pack) const {
  const int few = c.pp > 1 ? 1 : 2;
  Ends ends;
  for (const bool last : {false, true}) {
    if (last && c.pp == 1) {
      ends.push_back(ends[0]);
      break;
    }
    const MemoryNeed less = count(c, few, packs, last, with_pack),
                     more = count(c, few + 1, packs, last, with_pack);
    const double blocks = c.pp > 1 ? static_cast<double>(blocks_of_stage(
                                         cuts_.of(c.pp, c.vpp), c.pp, last ? c.pp - 1 : 0)) /
                                         c.vpp
                                   : cuts_.blocks();
    ends.push_back(sum_of_needs(less, blocks - few, more, less));
  }
  return ends;
}

const LayoutMemory::Ends& LayoutMemory::state_ends(const Candidate& c) {
  Ends& ends = states_[{c.tp, c.pp, c.vpp, c.shard, c.state_ranks()}];
  if (!ends.empty()) return ends;
  Candidate one{.tp = c.tp, .dp = c.state_ranks(), .pp = c.pp, .vpp = c.vpp};
  one.shard = c.shard;
  return ends = counted_ends(one, 1, false);
}

/// Of many passes a step few are counted: each more adds its batches, which wait from the begin of
/// the step before.
const LayoutMemory::Ends& LayoutMemory::pass_ends(const Candidate& c) {
  const int own = c.packs_of_rank(recipe_.data.packs), each = c.micro_packs,
            counted = std::min(own, (c.pp > 1 ? 2 * c.pp : 3) * each);
  const bool cp = c.cp > 1;
  Candidate one = with_few_ranks(c);
  Ends& ends =
      passes_[{c.tp, c.cp, cp ? c.cp_kind : models::CpKind::gather, c.cp_heads, c.hybrid,
               c.recompute, c.offload, each, c.shard, c.reshard, one.dp > 1, c.pp, c.vpp, own}];
  if (!ends.empty()) return ends;
  ends = counted_ends(one, counted, true);
  if (own == counted) return ends;
  one.pp = one.vpp = 1;
  const MemoryNeed two = count(one, 2, 2 * each, false, true),
                   three = count(one, 2, 3 * each, false, true);
  for (MemoryNeed& end : ends)
    end = sum_of_needs(end, static_cast<double>(own - counted) / each, three, two);
  return ends;
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
  const Ends &states = state_ends(candidate), &passes = pass_ends(candidate);
  MemoryNeed fullest;
  for (std::size_t i = 0; i < states.size(); ++i) {
    MemoryNeed need = states[i];
    need.activations = passes[i].activations;
    need.host = passes[i].host;
    need.pinned = passes[i].pinned;
    if (need.total() > fullest.total()) fullest = need;
  }
  return fullest;
}

MemoryNeed LayoutMemory::whole(const Candidate& candidate) const {
  return memory_need(candidate.of(recipe_), candidate.gpus(), candidate.recompute, device_, pack_);
}

}  // namespace vfm::train

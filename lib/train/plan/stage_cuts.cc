// SPDX-License-Identifier: Apache-2.0
#include "train/plan/stage_cuts.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include "train/kind.h"

namespace vfm::train {
namespace {

std::map<int, int> counts_of_kinds(const std::vector<int>& kinds) {
  std::map<int, int> counts;
  for (const int kind : kinds)
    ++counts[kind];
  return counts;
}

std::set<int> between_ends(const std::vector<int>& kinds) {
  if (kinds.size() < 3) return {};
  return {kinds.begin() + 1, kinds.end() - 1};
}

bool has_kinds(const std::set<int>& all, const std::set<int>& some) {
  return std::ranges::includes(all, some);
}

/// Whether `less` has every kind of block where `whole` has it.
bool stands_for(const std::vector<int>& less, const std::vector<int>& whole) {
  return less.front() == whole.front() && less.back() == whole.back() &&
         has_kinds(between_ends(less), between_ends(whole));
}

/// Whether what `more` and `whole` have beyond `less` is of all kinds in one proportion.
bool in_proportion(const std::vector<int>& less, const std::vector<int>& more,
                   const std::vector<int>& whole) {
  auto few = counts_of_kinds(less), next = counts_of_kinds(more), all = counts_of_kinds(whole);
  const int grows = static_cast<int>(more.size()) - static_cast<int>(less.size()),
            lacks = static_cast<int>(whole.size()) - static_cast<int>(less.size());
  std::set<int> kinds;
  for (const std::vector<int>* one : {&less, &more, &whole})
    kinds.insert(one->begin(), one->end());
  return std::ranges::all_of(kinds, [&](int kind) {
    return (all[kind] - few[kind]) * grows == (next[kind] - few[kind]) * lacks;
  });
}

}  // namespace

int* blocks_of(Recipe& recipe) {
  return kind_of(recipe.model.type).blocks(recipe.model);
}

StageCuts::StageCuts(const Recipe& recipe) : recipe_(recipe) {
  Recipe copy = recipe;
  if (const int* const blocks = blocks_of(copy)) blocks_ = *blocks;
  kinds_ = kinds(blocks_);
}

std::vector<int> StageCuts::kinds(int blocks) const {
  Recipe recipe = recipe_;
  int* const field = blocks_of(recipe);
  if (field == nullptr) return {0};
  *field = blocks;
  return kind_of(recipe.model.type).block_kinds(recipe.model);
}

bool StageCuts::alike() const {
  return std::ranges::all_of(kinds_, [this](int kind) { return kind == kinds_.front(); });
}

FewBlocks StageCuts::few(int least) const {
  if (alike()) return {least, least + 1};
  const int all = least * static_cast<int>(counts_of_kinds(kinds_).size());
  // Where nothing smaller does the whole itself, which lacks nothing.
  for (int less = std::min(std::max(kLeastUnlike, all), blocks_); less <= blocks_; ++less) {
    const std::vector<int> few = kinds(less);
    if (few.empty() || !stands_for(few, kinds_)) continue;
    for (int more = less + 1; more <= less + blocks_; ++more)
      if (const std::vector<int> next = kinds(more);
          !next.empty() && in_proportion(few, next, kinds_))
        return {less, more};
  }
  fail("a network of {} blocks of several kinds: no network of up to twice as many stands for it",
       blocks_);
}

const models::PartWork& StageCuts::work() {
  if (!work_) work_ = kind_of(recipe_.model.type).part_work(recipe_);
  return *work_;
}

const std::vector<int>& StageCuts::of(int pp, int vpp) {
  const auto found = known_.find({pp, vpp});
  if (found != known_.end()) return found->second;
  std::vector<int> chunks;
  if (pp > 1) chunks = models::balance_stages(work(), pp, vpp);
  return known_[{pp, vpp}] = std::move(chunks);
}

std::vector<int> StageCuts::chunks(int pp, int vpp) {
  return pp == 1 ? std::vector{blocks_} : of(pp, vpp);
}

double StageCuts::weights_of_stage(int pp, int vpp, int stage) {
  if (pp == 1) return blocks_;
  const std::vector<double>& weights = work().weights;
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (const int block : blocks_of_stage(of(pp, vpp), pp, stage))
    sum += weights.at(static_cast<std::size_t>(block)) * blocks_ / all;
  return sum;
}

std::vector<int> blocks_of_stage(const std::vector<int>& chunks, int pp, int stage) {
  std::vector<int> blocks;
  int begin = 0;
  for (std::size_t i = 0; i < chunks.size(); begin += chunks[i++])
    for (int block = begin; block < begin + chunks[i]; ++block)
      if (static_cast<int>(i) % pp == stage) blocks.push_back(block);
  return blocks;
}

}  // namespace vfm::train

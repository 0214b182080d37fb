// SPDX-License-Identifier: Apache-2.0
#include "data/blend_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "data/interleaving.h"

namespace vfm::data {
namespace {

/// Fewer are shuffled: of a handful of samples a keyed permutation knows only some of all orders.
constexpr std::uint64_t kFew = 256;

/// One set on the way through a block.
class SetWalk {
 public:
  /// From its `next`-th sample on, over all its epochs.
  SetWalk(std::uint64_t samples, std::uint64_t first, std::uint64_t next, std::uint64_t seed,
          std::uint64_t source)
      : samples_(samples), first_(first), next_(next), seed_(seed), source_(source) {}

  /// The number of its next sample.
  std::uint64_t next() {
    const std::uint64_t epoch = next_ / samples_, place = next_ % samples_;
    if (epoch != epoch_) {
      const auto step = static_cast<std::uint32_t>(epoch);
      if (samples_ <= kFew)
        shuffled_ = epoch_order(samples_, seed_, step, source_);
      else
        order_.emplace(samples_, Random(seed_, Purpose::data_order, step, source_));
      epoch_ = epoch;
    }
    ++next_;
    return first_ + (order_ ? order_->at(place) : shuffled_[place]);
  }

 private:
  std::uint64_t samples_, first_, next_, seed_, source_;
  std::uint64_t epoch_ = UINT64_MAX;  // that the following are of
  std::vector<std::uint64_t> shuffled_;
  std::optional<KeyedPermutation> order_;
};

class BlendOrder final : public EpochOrder {
 public:
  BlendOrder(std::vector<std::uint64_t> sizes, const BlendShares& shares, std::uint64_t seed)
      : sizes_(std::move(sizes)), sources_(shares.shares), epoch_(shares.epoch), seed_(seed) {}

  std::uint64_t blocks() const override { return block_count(epoch_, Packing::blocks); }
  std::vector<std::uint64_t> block(std::uint32_t epoch, std::uint64_t block) const override {
    const std::uint64_t begin = epoch * epoch_ + block * kBlock,
                        count = std::min(epoch_ - block * kBlock, kBlock);
    const std::vector<std::uint64_t> before = sources_.counts(begin);
    std::vector<SetWalk> sets;
    std::uint64_t first = 0;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      sets.emplace_back(sizes_[i], first, before[i], seed_, i);
      first += sizes_[i];
    }
    Interleaving::Walk walk(sources_, begin);
    std::vector<std::uint64_t> numbers(count);
    for (std::uint64_t& number : numbers)
      number = sets[walk.next()].next();
    return numbers;
  }

 private:
  std::vector<std::uint64_t> sizes_;
  Interleaving sources_;
  std::uint64_t epoch_, seed_;
};

}  // namespace

BlendShares shares_of_weights(std::span<const double> weights,
                              std::span<const std::uint64_t> sizes) {
  const std::vector<std::uint64_t> ones(sizes.size(), 1);
  return {whole_shares(weights, ones, "data.weights"),
          std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0})};
}

BlendShares shares_of_repeats(std::span<const double> repeats,
                              std::span<const std::uint64_t> sizes) {
  double epoch = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    epoch += repeats[i] * static_cast<double>(sizes[i]);
  if (epoch > 1e15) fail_usage("'data.repeats' make an epoch of {} samples: too many", epoch);
  return {whole_shares(repeats, sizes, "data.repeats"),
          static_cast<std::uint64_t>(std::max(1.0, std::round(epoch)))};
}

std::unique_ptr<EpochOrder> order_of_blend(std::vector<std::uint64_t> sizes, BlendShares shares,
                                           std::uint64_t seed) {
  return std::make_unique<BlendOrder>(std::move(sizes), shares, seed);
}

}  // namespace vfm::data

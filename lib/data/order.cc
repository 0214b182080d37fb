// SPDX-License-Identifier: Apache-2.0
#include "data/order.h"

#include <algorithm>
#include <bit>

namespace vfm::data {
namespace {

constexpr int kRounds = 8;

class SetOrder final : public EpochOrder {
 public:
  SetOrder(std::uint64_t samples, std::uint64_t seed, Packing packing)
      : samples_(samples), seed_(seed), packing_(packing) {}

  std::uint64_t blocks() const override { return block_count(samples_, packing_); }
  std::vector<std::uint64_t> block(std::uint32_t epoch, std::uint64_t block) const override {
    if (blocks() == 1) return epoch_order(samples_, seed_, epoch);
    const KeyedPermutation order(samples_, Random(seed_, Purpose::data_order, epoch));
    std::vector<std::uint64_t> numbers;
    const std::uint64_t end = std::min(samples_, (block + 1) * kBlock);
    for (std::uint64_t place = block * kBlock; place < end; ++place)
      numbers.push_back(order.at(place));
    return numbers;
  }

 private:
  std::uint64_t samples_, seed_;
  Packing packing_;
};

}  // namespace

KeyedPermutation::KeyedPermutation(std::uint64_t count, const Random& random)
    : count_(count), random_(random) {
  const int bits = std::max(2, static_cast<int>(std::bit_width(count > 0 ? count - 1 : 0)));
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
}

/// In turn each half is changed by what the other one is, which can be undone.
std::uint64_t KeyedPermutation::scrambled(std::uint64_t value) const {
  const std::uint64_t low_mask = (std::uint64_t{1} << low_bits_) - 1;
  const std::uint64_t high_mask = (std::uint64_t{1} << high_bits_) - 1;
  std::uint64_t low = value & low_mask, high = value >> low_bits_;
  for (std::uint64_t round = 0; round < kRounds; round += 2) {
    low ^= random_.bits(round << 32 | high) & low_mask;
    high ^= random_.bits((round + 1) << 32 | low) & high_mask;
  }
  return high << low_bits_ | low;
}

std::uint64_t KeyedPermutation::at(std::uint64_t i) const {
  // The domain is less than twice as large, and what lies beyond is followed until it comes back.
  do
    i = scrambled(i);
  while (i >= count_);
  return i;
}

std::vector<std::uint64_t> epoch_order(std::uint64_t samples, std::uint64_t seed,
                                       std::uint32_t epoch, std::uint64_t source) {
  return Random(seed, Purpose::data_order, epoch, source).permutation(samples);
}

std::uint64_t block_count(std::uint64_t samples, Packing packing) {
  if (packing != Packing::blocks) return 1;
  return std::max<std::uint64_t>(1, (samples + kBlock - 1) / kBlock);
}

std::unique_ptr<EpochOrder> order_of_set(std::uint64_t samples, std::uint64_t seed,
                                         Packing packing) {
  return std::make_unique<SetOrder>(samples, seed, packing);
}

std::vector<Pack> block_packs(const EpochOrder& order, const LengthsOf& lengths,
                              const PackingOptions& options, std::uint32_t epoch,
                              std::uint64_t block) {
  const std::vector<std::uint64_t> numbers = order.block(epoch, block);
  std::vector<Pack> packs = plan_packs(lengths(numbers), options);
  for (Pack& pack : packs)
    for (std::size_t& i : pack)
      i = numbers[i];
  return packs;
}

std::vector<Pack> block_packs(std::uint64_t samples, const LengthsOf& lengths,
                              const PackingOptions& options, std::uint64_t seed,
                              std::uint32_t epoch, std::uint64_t block) {
  return block_packs(SetOrder(samples, seed, options.packing), lengths, options, epoch, block);
}

}  // namespace vfm::data

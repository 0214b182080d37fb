// The order in which an epoch visits its samples, and the packs it makes of them.
//
// An epoch is cut into blocks of 16,384 samples of its order, the last one has the rest, and each
// block is packed by itself: so any pack is known after planning its block, and nothing of the size
// of the epoch is in memory. Which sample stands where in the order is a function of the place: a
// keyed permutation, a Feistel network over the places whose round function is Philox under (seed,
// epoch), of a domain of a power of two with "cycle walking" (Black and Rogaway, "Ciphers with
// arbitrary finite domains", CT-RSA 2002). An epoch of one block alone is shuffled, as whole epochs
// were before there were blocks (Packing): its packs are those of that time.
// Pure: the same on every rank, and known for any epoch without the ones before it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/philox.h"
#include "data/packing.h"

namespace vfm::data {

/// Samples of a block.
constexpr std::uint64_t kBlock = 16384;

/// A permutation of 0..count-1 of which each element is computed alone, in less than a microsecond.
/// One that seems random: not for secrets.
class KeyedPermutation {
 public:
  KeyedPermutation(std::uint64_t count, const Random& random);
  /// Of i < count.
  std::uint64_t at(std::uint64_t i) const;

 private:
  std::uint64_t scrambled(std::uint64_t value) const;

  std::uint64_t count_;
  int low_bits_, high_bits_;
  Random random_;
};

/// A uniformly random permutation of 0..samples-1 for `epoch`, as a whole. `source` names the data
/// set (any number), so that the sets of a blend are shuffled independently under one seed.
std::vector<std::uint64_t> epoch_order(std::uint64_t samples, std::uint64_t seed,
                                       std::uint32_t epoch, std::uint64_t source = 0);

/// Blocks of an epoch; at least one. Where `packing` knows none the whole epoch is one.
std::uint64_t block_count(std::uint64_t samples, Packing packing);

/// Which samples each epoch visits, in order, a block at a time. Thread-safety: any thread.
class EpochOrder {
 public:
  virtual ~EpochOrder() = default;
  /// Of each epoch; at least one.
  virtual std::uint64_t blocks() const = 0;
  /// Numbers of samples, which of a blend (data/blend_order.h) may come more than once.
  virtual std::vector<std::uint64_t> block(std::uint32_t epoch, std::uint64_t block) const = 0;
};

/// Of one set: each sample once an epoch.
std::unique_ptr<EpochOrder> order_of_set(std::uint64_t samples, std::uint64_t seed,
                                         Packing packing);

/// Lengths of the samples of these numbers, each in tokens.
using LengthsOf = std::function<std::vector<std::int64_t>(std::span<const std::uint64_t>)>;

/// The packs of a block, in order; of numbers of samples. A pack holds none of another block.
std::vector<Pack> block_packs(const EpochOrder& order, const LengthsOf& lengths,
                              const PackingOptions& options, std::uint32_t epoch,
                              std::uint64_t block);
/// Of one set. A pack never holds a sample twice.
std::vector<Pack> block_packs(std::uint64_t samples, const LengthsOf& lengths,
                              const PackingOptions& options, std::uint64_t seed,
                              std::uint32_t epoch, std::uint64_t block);

}  // namespace vfm::data

// The order in which an epoch visits its samples, and the packs it makes of them.
//
// An epoch is cut into blocks of 16,384 samples of its order; the last block has the rest. Each
// block is packed by itself: so any pack is known after planning its block, and nothing of the size
// of the epoch is in memory.
//
// The sample at a place of the order is a function of the place. It is a keyed permutation: a
// Feistel network over a domain of a power of two, with "cycle walking" (Black and Rogaway,
// "Ciphers with arbitrary finite domains", CT-RSA 2002). The round function is Philox under (seed,
// epoch). An epoch of a single block is shuffled instead, so its packs are the same as with a
// Packing without blocks. Pure: the same on every rank, and known for any epoch without the ones
// before it.
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

/// Samples in a block.
constexpr std::uint64_t kBlock = 16384;

/// A permutation of 0..count-1 that computes each element alone, in less than a microsecond. It
/// seems random, but is not fit for secrets.
class KeyedPermutation {
 public:
  KeyedPermutation(std::uint64_t count, const Random& random);
  /// Takes i < count.
  std::uint64_t at(std::uint64_t i) const;

 private:
  std::uint64_t scrambled(std::uint64_t value) const;

  std::uint64_t count_;
  int low_bits_, high_bits_;
  Random random_;
};

/// A uniformly random permutation of 0..samples-1 for `epoch`, as a whole. `source` is the number
/// of the data set: the sets of a blend are shuffled independently under one seed.
std::vector<std::uint64_t> epoch_order(std::uint64_t samples, std::uint64_t seed,
                                       std::uint32_t epoch, std::uint64_t source = 0);

/// Number of blocks of an epoch, at least one. With a packing without blocks it is one.
std::uint64_t block_count(std::uint64_t samples, Packing packing);

/// Which samples each epoch visits, in order, a block at a time. Thread-safety: any thread.
class EpochOrder {
 public:
  virtual ~EpochOrder() = default;
  /// Number of blocks of each epoch, at least one.
  virtual std::uint64_t blocks() const = 0;
  /// The numbers of the samples of a block. In a blend (data/blend_order.h) a number may repeat.
  virtual std::vector<std::uint64_t> block(std::uint32_t epoch, std::uint64_t block) const = 0;
};

/// The order of one set, in which each epoch has each sample once.
std::unique_ptr<EpochOrder> order_of_set(std::uint64_t samples, std::uint64_t seed,
                                         Packing packing);

/// Gives the lengths of the samples with these numbers, in tokens.
using LengthsOf = std::function<std::vector<std::int64_t>(std::span<const std::uint64_t>)>;

/// The packs of a block in order, as numbers of samples. A pack holds samples of one block.
std::vector<Pack> block_packs(const EpochOrder& order, const LengthsOf& lengths,
                              const PackingOptions& options, std::uint32_t epoch,
                              std::uint64_t block);
/// The same for one set. A pack never holds a sample twice.
std::vector<Pack> block_packs(std::uint64_t samples, const LengthsOf& lengths,
                              const PackingOptions& options, std::uint64_t seed,
                              std::uint32_t epoch, std::uint64_t block);

}  // namespace vfm::data

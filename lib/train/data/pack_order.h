// The packs that a run sees, in order, epoch after epoch without end.
//
// data/order.h makes the order of an epoch. A position is (epoch, block, pack): resuming plans one
// block and reads no sample, and only the packs of one block are in memory.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/order.h"

namespace vfm::train {

/// The next pack to come: `pack` of `block` of `epoch`.
struct DataPosition {
  std::uint32_t epoch = 0;
  std::uint64_t pack = 0, block = 0;
};

class PackOrder {
 public:
  /// The order of one set of `samples` samples, none longer than the capacity of a pack. Calls
  /// `lengths` for one block at a time.
  PackOrder(std::uint64_t samples, data::LengthsOf lengths, std::uint64_t seed,
            const data::PackingOptions& options);

  /// Packs of samples in this order.
  PackOrder(std::unique_ptr<data::EpochOrder> order, data::LengthsOf lengths,
            const data::PackingOptions& options);

  /// The next pack, as numbers of samples.
  data::Pack next();
  DataPosition position() const { return position_; }
  /// Throws Error if the data do not have this position.
  void seek(DataPosition position);

 private:
  void plan();

  std::unique_ptr<data::EpochOrder> order_;
  data::LengthsOf lengths_;
  data::PackingOptions options_;
  DataPosition position_;
  std::vector<data::Pack> packs_;  ///< packs of the block of position_
};

}  // namespace vfm::train

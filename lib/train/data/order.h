// Which samples a run sees, in which order: packs, epoch after epoch without end.
//
// What an epoch holds is data/order.h. A position is (epoch, block, pack), so resuming plans one
// block and reads no sample; nothing is kept but the packs of a block.
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
  /// Of so many samples, none of which is longer than the capacity of a pack. `lengths` is asked
  /// for a block at a time.
  PackOrder(std::uint64_t samples, data::LengthsOf lengths, std::uint64_t seed,
            const data::PackingOptions& options);

  /// Of samples in that order.
  PackOrder(std::unique_ptr<data::EpochOrder> order, data::LengthsOf lengths,
            const data::PackingOptions& options);

  /// The next pack: numbers of samples.
  data::Pack next();
  DataPosition position() const { return position_; }
  /// Throws Error for a position that the data do not have.
  void seek(DataPosition position);

 private:
  void plan();

  std::unique_ptr<data::EpochOrder> order_;
  data::LengthsOf lengths_;
  data::PackingOptions options_;
  DataPosition position_;
  std::vector<data::Pack> packs_;  ///< of the block of position_
};

}  // namespace vfm::train

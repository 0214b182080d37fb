// Which samples a run sees, in which order: packs, epoch after epoch without end.
//
// What an epoch holds is data/order.h. A position is (epoch, pack), so resuming plans one epoch and
// reads nothing.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "data/order.h"

namespace vfm::train {

/// The next pack to come: `pack` of `epoch`.
struct DataPosition {
  std::uint32_t epoch = 0;
  std::uint64_t pack = 0;
};

class PackOrder {
 public:
  /// `tokens[i]` is the length of sample i; none is longer than the capacity of a pack.
  PackOrder(std::vector<std::int64_t> tokens, std::uint64_t seed, const data::PackOptions& options);

  /// The next pack: indices of samples.
  data::Pack next();
  DataPosition position() const { return position_; }
  void seek(DataPosition position);

 private:
  void plan();

  std::vector<std::int64_t> tokens_;
  std::uint64_t seed_;
  data::PackOptions options_;
  DataPosition position_;
  std::vector<data::Pack> packs_;  ///< of position_.epoch
};

}  // namespace vfm::train

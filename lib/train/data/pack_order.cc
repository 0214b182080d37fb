// SPDX-License-Identifier: Apache-2.0
#include "train/data/pack_order.h"

#include <utility>

#include "base/error.h"

namespace vfm::train {

PackOrder::PackOrder(std::uint64_t samples, data::LengthsOf lengths, std::uint64_t seed,
                     const data::PackingOptions& options)
    : PackOrder(data::order_of_set(samples, seed, options.packing), std::move(lengths), options) {}

PackOrder::PackOrder(std::unique_ptr<data::EpochOrder> order, data::LengthsOf lengths,
                     const data::PackingOptions& options)
    : order_(std::move(order)), lengths_(std::move(lengths)), options_(options) {
  plan();
  if (packs_.empty()) fail("the data have no samples to train on");
}

void PackOrder::plan() {
  packs_ = data::block_packs(*order_, lengths_, options_, position_.epoch, position_.block);
}

data::Pack PackOrder::next() {
  if (position_.pack == packs_.size()) {
    position_.pack = 0;
    if (++position_.block == order_->blocks()) {
      position_.block = 0;
      ++position_.epoch;
    }
    plan();
  }
  return packs_[position_.pack++];
}

void PackOrder::seek(DataPosition position) {
  const std::uint64_t blocks = order_->blocks();
  if (position.block >= blocks)
    fail("the data position (epoch {}, block {}) is beyond the {} blocks of the data",
         position.epoch, position.block, blocks);
  const bool same = position.epoch == position_.epoch && position.block == position_.block;
  position_ = position;
  if (!same) plan();
  if (position_.pack > packs_.size())
    fail("the data position (epoch {}, block {}, pack {}) is beyond the {} packs of the block",
         position.epoch, position.block, position.pack, packs_.size());
}

}  // namespace vfm::train

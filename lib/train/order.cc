// SPDX-License-Identifier: Apache-2.0
#include "train/order.h"

#include "base/error.h"

namespace vfm::train {

PackOrder::PackOrder(std::vector<std::int64_t> tokens, std::uint64_t seed,
                     const data::PackOptions& options)
    : tokens_(std::move(tokens)), seed_(seed), options_(options) {
  if (tokens_.empty()) fail("there is no sample to train on");
  plan();
}

void PackOrder::plan() {
  packs_ = data::epoch_packs(tokens_, options_, seed_, position_.epoch);
}

data::Pack PackOrder::next() {
  if (position_.pack == packs_.size()) {
    ++position_.epoch;
    position_.pack = 0;
    plan();
  }
  return packs_[position_.pack++];
}

void PackOrder::seek(DataPosition position) {
  const bool same_epoch = position.epoch == position_.epoch;
  position_ = position;
  if (!same_epoch) plan();
  if (position_.pack > packs_.size())
    fail("the data position (epoch {}, pack {}) is beyond the {} packs of the data", position.epoch,
         position.pack, packs_.size());
}

}  // namespace vfm::train

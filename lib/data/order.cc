// SPDX-License-Identifier: Apache-2.0
#include "data/order.h"

#include "base/philox.h"

namespace vfm::data {

std::vector<std::uint64_t> epoch_order(std::uint64_t samples, std::uint64_t seed,
                                       std::uint32_t epoch, std::uint64_t source) {
  return Random(seed, Purpose::data_order, epoch, source).permutation(samples);
}

std::vector<Pack> epoch_packs(std::span<const std::int64_t> tokens, const PackOptions& options,
                              std::uint64_t seed, std::uint32_t epoch) {
  const std::vector<std::uint64_t> order = epoch_order(tokens.size(), seed, epoch);
  std::vector<std::int64_t> lengths;
  lengths.reserve(order.size());
  for (const std::uint64_t i : order)
    lengths.push_back(tokens[i]);
  std::vector<Pack> packs = plan_packs(lengths, options);
  for (Pack& pack : packs)
    for (std::size_t& i : pack)
      i = order[i];
  return packs;
}

}  // namespace vfm::data

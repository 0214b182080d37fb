// SPDX-License-Identifier: Apache-2.0
#include "train/text_dropout.h"

#include "base/philox.h"

namespace vfm::train {

bool drop_text(double rate, std::uint64_t seed, std::uint32_t step, const std::string& key) {
  return Random(seed, Purpose::text_dropout, step, random_key(key)).uniform(0) < rate;
}

}  // namespace vfm::train

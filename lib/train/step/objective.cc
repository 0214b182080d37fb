// SPDX-License-Identifier: Apache-2.0
#include "train/step/objective.h"

#include "base/error.h"
#include "base/philox.h"

namespace vfm::train {

const nn::ParameterList& Objective::frozen() const {
  static const nn::ParameterList none;
  return none;
}

std::unique_ptr<ChunkedPass> Objective::pass_in_chunks(Batch& /*batch*/,
                                                       const ops::Tape::Listener& /*final*/) const {
  fail("this model is not cut into stages of a pipeline");
}

std::vector<float> Objective::reconstruct(const CleanSample& /*sample*/) const {
  return {};
}

bool drop_text(double rate, std::uint64_t seed, std::uint32_t step, const std::string& key) {
  return Random(seed, Purpose::text_dropout, step, random_key(key)).uniform(0) < rate;
}

}  // namespace vfm::train

// Training without text now and then, so that a model can be sampled without it (guidance).
// Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace vfm::train {

/// Whether the sample is trained without its text in this step; `rate` is how often.
bool drop_text(double rate, std::uint64_t seed, std::uint32_t step, const std::string& key);

}  // namespace vfm::train

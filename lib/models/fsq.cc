// SPDX-License-Identifier: Apache-2.0
#include "models/fsq.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace vfm::models {

Fsq::Fsq(std::vector<int> levels) : levels_(std::move(levels)), bounds_(ops::fsq_levels(levels_)) {
  std::int64_t codes = 1;
  for (const int level : levels_) {
    if (level > 1024) fail("FSQ of {} levels: 3 to 1024", level);
    codes *= level;
    if (codes > std::numeric_limits<std::int32_t>::max()) fail("FSQ of too many codes");
  }
  codes_ = static_cast<int>(codes);
}

std::int32_t Fsq::encode(const float* z, std::size_t stride) const {
  std::int32_t code = 0, base = 1;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    const float bounded =
        std::tanh(z[i * stride] + bounds_.shift[i]) * bounds_.half[i] - bounds_.offset[i];
    // A number that is none is in the middle, so that what is made of it is a code.
    const int level =
        (std::isnan(bounded) ? 0 : static_cast<int>(std::nearbyint(bounded))) + levels_[i] / 2;
    code += std::clamp(level, 0, levels_[i] - 1) * base;
    base *= levels_[i];
  }
  return code;
}

std::int32_t Fsq::code(const float* values, std::size_t stride) const {
  std::int32_t code = 0, base = 1;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    const int middle = levels_[i] / 2;
    const float level = values[i * stride] * static_cast<float>(middle);
    code += std::clamp((std::isnan(level) ? 0 : static_cast<int>(std::lround(level))) + middle, 0,
                       levels_[i] - 1) *
            base;
    base *= levels_[i];
  }
  return code;
}

void Fsq::values(std::int32_t code, float* out, std::size_t stride) const {
  if (code < 0 || code >= codes_) fail("code {} is not below {}", code, codes_);
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    const int middle = levels_[i] / 2;
    out[i * stride] = static_cast<float>(code % levels_[i] - middle) / static_cast<float>(middle);
    code /= levels_[i];
  }
}

float Fsq::unbound(std::size_t i, float value) const {
  const int middle = levels_[i] / 2, last = levels_[i] - 1 - middle;
  const int level =
      std::clamp(static_cast<int>(std::lround(value * static_cast<float>(middle))), -middle, last);
  // Where levels meet. Half a level beyond the last one tanh may already be past its end.
  const auto edge = [&](int below) {
    return std::atanh((static_cast<float>(below) + 0.5f + bounds_.offset[i]) / bounds_.half[i]) -
           bounds_.shift[i];
  };
  if (level == last) return edge(last - 1) + (edge(last - 1) - edge(last - 2)) / 2;
  if (level == -middle) return edge(-middle) - (edge(-middle + 1) - edge(-middle)) / 2;
  return (edge(level) + edge(level - 1)) / 2;
}

}  // namespace vfm::models

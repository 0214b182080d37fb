// For builds without libebur128: no loudness.
// SPDX-License-Identifier: Apache-2.0
#include "media/sound/loudness.h"

namespace vfm::media {

struct LoudnessMeter::State {};

std::string loudness_version() {
  return {};
}

LoudnessMeter::LoudnessMeter(const std::vector<LoudnessWeight>&, int) {}
LoudnessMeter::~LoudnessMeter() = default;
LoudnessMeter::LoudnessMeter(LoudnessMeter&&) noexcept = default;

void LoudnessMeter::add(const float*, std::size_t) {}

std::optional<double> LoudnessMeter::integrated() const {
  return std::nullopt;
}

}  // namespace vfm::media

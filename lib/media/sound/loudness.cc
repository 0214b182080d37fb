// SPDX-License-Identifier: Apache-2.0
#include "media/sound/loudness.h"

#include <ebur128.h>

#include <cmath>
#include <new>

namespace vfm::media {

struct LoudnessMeter::State {
  explicit State(ebur128_state* given) : meter(given) {}

  ebur128_state* meter;
  ~State() { ebur128_destroy(&meter); }
};

std::string loudness_version() {
  int major = 0, minor = 0, patch = 0;
  ebur128_get_version(&major, &minor, &patch);
  return "libebur128 " + std::to_string(major) + "." + std::to_string(minor) + "." +
         std::to_string(patch);
}

LoudnessMeter::LoudnessMeter(const std::vector<LoudnessWeight>& channels, int rate) {
  // A histogram of tenths of LU instead of a list of all blocks, so memory does not grow.
  ebur128_state* meter =
      ebur128_init(static_cast<unsigned>(channels.size()), static_cast<unsigned long>(rate),
                   EBUR128_MODE_I | EBUR128_MODE_HISTOGRAM);
  if (!meter) throw std::bad_alloc();
  state_ = std::make_unique<State>(meter);
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const int role = channels[i] == LoudnessWeight::front      ? EBUR128_LEFT
                     : channels[i] == LoudnessWeight::surround ? EBUR128_LEFT_SURROUND
                                                               : EBUR128_UNUSED;
    ebur128_set_channel(meter, static_cast<unsigned>(i), role);
  }
}

LoudnessMeter::~LoudnessMeter() = default;
LoudnessMeter::LoudnessMeter(LoudnessMeter&&) noexcept = default;

void LoudnessMeter::add(const float* samples, std::size_t times) {
  if (ebur128_add_frames_float(state_->meter, samples, times) == EBUR128_ERROR_NOMEM)
    throw std::bad_alloc();
}

std::optional<double> LoudnessMeter::integrated() const {
  double lufs = 0;
  if (ebur128_loudness_global(state_->meter, &lufs) != EBUR128_SUCCESS || !std::isfinite(lufs))
    return std::nullopt;
  return lufs;
}

}  // namespace vfm::media

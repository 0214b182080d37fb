// How a network takes the frames that a video begins with. Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/dit/network.h"

namespace vfm::models {

/// How a network takes given frames.
enum class GivenFramesBy {
  none,        ///< not at all
  mark,        ///< a channel more than those of the latent is 1 there
  clean_time,  ///< the state is their latent, and the noise level is 0 there: clean_frames
  /// The latent has the channels [state, mask, condition]. The mask has four, which are 1 for the
  /// given frames of pixels. The condition is the latent of a clip of the given frames and zeros.
  mask_and_latent,
};

/// Returns how a network of this configuration takes given frames, if it was trained with them.
GivenFramesBy given_by(const NetworkConfig& config);

}  // namespace vfm::models

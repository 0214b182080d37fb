// Computes the weights with which Scaler::to_rgb() (scaler.h) converts a 4:2:0 frame, for code that
// converts frames on a GPU.
//
// Another version of FFmpeg may round differently, so code that uses the weights must compare one
// result with the result of Scaler. Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/picture_scale.h"
#include "media/colour/resizer.h"
#include "media/colour/scaler.h"
#include "media/frame.h"

namespace vfm::media {

/// The part of a frame that to_rgb() scales, and the size of the result.
struct ScaledPart {
  Rectangle part;
  int width = 0, height = 0;  ///< Size of the result before rotation.
  bool averages = false;      ///< Uses area averages instead of bicubic interpolation.
  int matrix = 0;
  bool full_range = false;
  friend bool operator==(const ScaledPart&, const ScaledPart&) = default;
};

/// Returns the part that to_rgb() scales with `options`. The result depends only on the size and
/// colours of the frame. Throws Error for an impossible size.
ScaledPart scaled_part(const Frame& frame, const ScaleOptions& options);

/// Returns the weights for a yuv420 frame. Throws Error if swscale cannot do this scaling.
PictureScale picture_scale(const ScaledPart& part);

}  // namespace vfm::media

// The weights with which Scaler::to_rgb() (scaler.h) converts a 4:2:0 frame, for code that converts
// frames on a GPU.
//
// The weights are measured exactly. Code that uses the weights must compare one result with
// Scaler's, since another version of FFmpeg may round differently.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/picture_scale.h"
#include "media/colour/resizer.h"
#include "media/colour/scaler.h"
#include "media/frame.h"

namespace vfm::media {

/// The part of a frame that to_rgb() scales, and the result before rotation.
struct ScaledPart {
  Rectangle part;             ///< of the stored picture
  int width = 0, height = 0;  ///< of the result, before rotation
  bool averages = false;      ///< averages by area, to shrink; otherwise bicubic
  int matrix = 0;             ///< resolve_matrix()
  bool full_range = false;
  friend bool operator==(const ScaledPart&, const ScaledPart&) = default;
};

/// The result depends only on the frame's size and colours. Throws Error for an impossible size, as
/// to_rgb() does.
ScaledPart scaled_part(const Frame& frame, const ScaleOptions& options);

/// Returns the weights for a yuv420 frame, which do not depend on the part's place. Throws Error if
/// swscale cannot do this scaling.
PictureScale picture_scale(const ScaledPart& part);

}  // namespace vfm::media

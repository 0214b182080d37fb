// The numbers by which Scaler::to_rgb() (scaler.h) converts a 4:2:0 frame, for code that does the
// same on a GPU, where the frame is.
//
// swscale does not expose its weights. They are measured: pictures with one bright sample a line
// are scaled, and the results are its exact weights. Users must compare once with Scaler, since
// another version of FFmpeg may round differently. Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/picture_scale.h"
#include "media/colour/resizer.h"
#include "media/colour/scaler.h"
#include "media/frame.h"

namespace vfm::media {

/// The part of a frame that to_rgb() takes, and its size before it is turned upright.
struct ScaledPart {
  Rectangle part;             ///< of the stored picture
  int width = 0, height = 0;  ///< of the result, as stored
  bool averages = false;      ///< by area, as where it shrinks; else bicubic
  int matrix = 0;             ///< resolve_matrix()
  bool full_range = false;
  friend bool operator==(const ScaledPart&, const ScaledPart&) = default;
};

/// Depends only on the frame's size and colours. Throws Error as to_rgb() does for an impossible
/// size.
ScaledPart scaled_part(const Frame& frame, const ScaleOptions& options);

/// The numbers for a frame of yuv420; they do not depend on the part's place. Throws Error if
/// swscale cannot do it.
PictureScale picture_scale(const ScaledPart& part);

}  // namespace vfm::media

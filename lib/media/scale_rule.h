// What Scaler::to_rgb() (scaler.h) does to a frame of 4:2:0, as numbers, for whoever does the same
// elsewhere: on a GPU, where the frame is.
//
// swscale keeps its weights to itself. They are found as anyone can who may use it: pictures of one
// bright sample a line are scaled, and what becomes of it is its weight, exactly. Whoever computes
// by them compares once with Scaler, as another version of FFmpeg may round otherwise.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/picture_scale.h"
#include "media/frame.h"
#include "media/resizer.h"
#include "media/scaler.h"

namespace vfm::media {

/// What to_rgb() takes of a frame, and what it makes of that before it is turned upright.
struct ScaledPart {
  Rectangle part;             ///< of the stored picture
  int width = 0, height = 0;  ///< of the result, as stored
  bool averages = false;      ///< by area, as where it shrinks; else bicubic
  int matrix = 0;             ///< resolve_matrix()
  bool full_range = false;
  friend bool operator==(const ScaledPart&, const ScaledPart&) = default;
};

/// Of the frame's size and colours alone. Throws Error as to_rgb() does for an impossible size.
ScaledPart scaled_part(const Frame& frame, const ScaleOptions& options);

/// The numbers by which a frame of yuv420 gets there; they do not depend on where the part is.
/// Throws Error where swscale cannot do it.
PictureScale picture_scale(const ScaledPart& part);

}  // namespace vfm::media

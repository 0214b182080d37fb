// Estimates the motion of the camera as one shift and one zoom of the whole picture.
//
// The Gauss-Newton method minimises the squared difference of two pictures, from coarse to fine
// (Lucas and Kanade 1981, Bergen et al. 1992). The motion is known only if details in all parts of
// the picture move alike.
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "curate/glimpse.h"

namespace vfm::curate {

/// The motion of the camera in picture widths per second. `right` and `up` are positive if the
/// camera turns right and up. `zoom` 0.1 means that the picture grows by 10 % per second.
struct CameraMotion {
  bool known = false;
  double right = 0, up = 0, zoom = 0;
};

CameraMotion camera_motion(const Glimpse& glimpse);

/// The motion between two pictures. A point at (x, y) from the centre moves by (dx + zoom * x, dy +
/// zoom * y) pixels.
struct Shift {
  double dx = 0, dy = 0, zoom = 0;
  /// The mean squared difference of the pictures, without and with the shift.
  double error_before = 0, error_after = 0;
};
/// Estimates the motion from `before` to `after`, row-major pictures of `size` x `size` pixels.
Shift estimate_shift(const std::vector<float>& before, const std::vector<float>& after, int size);

}  // namespace vfm::curate

// Estimates the motion of the camera as one shift and one zoom of the whole picture.
//
// The pictures' squared difference is minimised by Gauss-Newton, from coarse to fine (Lucas and
// Kanade 1981; the parametric form of Bergen et al. 1992). Motion is reported only if detail all
// over the picture moves together.
// Pure; thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "curate/glimpse.h"

namespace vfm::curate {

/// The camera's motion, in picture widths a second: right > 0 if the camera turns right (the
/// picture slides left), up > 0 if it turns up. Zoom is growth a second: 0.1 means growth by 10 %.
struct CameraMotion {
  bool known = false;
  double right = 0, up = 0, zoom = 0;
};

CameraMotion camera_motion(const Glimpse& glimpse);

/// The motion from `before` to `after`, both `size` x `size`, row-major. A point at (x, y) from the
/// centre moves by (dx + zoom * x, dy + zoom * y) pixels.
struct Shift {
  double dx = 0, dy = 0, zoom = 0;
  double error_before = 0,
         error_after = 0;  ///< mean squared difference, without and with the shift
};
Shift estimate_shift(const std::vector<float>& before, const std::vector<float>& after, int size);

}  // namespace vfm::curate

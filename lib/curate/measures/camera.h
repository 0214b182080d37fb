// The camera's motion, where the picture shows it: one shift and one zoom for the whole picture.
//
// Found by Gauss-Newton on the squared difference, from coarse to fine (Lucas and Kanade 1981; the
// parametric form of Bergen et al. 1992). Motion is only reported when detail all over the picture
// moves together: an object that crosses a plain ground is not a pan.
// Pure; thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "curate/glimpse.h"

namespace vfm::curate {

/// In picture widths a second: right > 0 when the camera turns right (the picture slides left), up
/// > 0 when it turns up; zoom > 0 when it nears, as growth a second (0.1: things grow by 10 %).
struct CameraMotion {
  bool known = false;
  double right = 0, up = 0, zoom = 0;
};

CameraMotion camera_motion(const Glimpse& glimpse);

/// How the content of `before` moved to `after`, both `size` squared, row-major: a point at (x, y)
/// from the centre moves by (dx + zoom * x, dy + zoom * y) pixels.
struct Shift {
  double dx = 0, dy = 0, zoom = 0;
  double error_before = 0,
         error_after = 0;  ///< mean squared difference, without and with the shift
};
Shift estimate_shift(const std::vector<float>& before, const std::vector<float>& after, int size);

}  // namespace vfm::curate

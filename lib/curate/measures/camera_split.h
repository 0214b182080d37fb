// The motion between two frames, split into camera motion and the rest.
//
// An affine field (a shift, a zoom, a turn, a shear) is fitted to the vectors of the blocks that
// shot detection has made, by least squares over the blocks that follow it, repeated until these
// stay the same: the "dominant motion" of Odobez and Bouthemy (1995), from vectors instead of
// gradients. If an object covers most of the picture, its motion counts as the camera's. Pure.
// Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "curate/measures/motion.h"

namespace vfm::curate {

struct MotionSplit {
  float camera = 0;  ///< mean length of the field over all blocks, in frame diagonals
  float object = 0;  ///< mean length of the remaining vectors, 0 if within the error
};

/// `picture`: the frame that the motion leads to; blocks without detail follow the camera.
/// `aspect`: width / height as shown.
MotionSplit split_motion(const MotionField& motion, const SmallPicture& picture, double aspect);

}  // namespace vfm::curate

// Splits the motion between two frames into camera motion and object motion.
//
// Camera motion is an affine field (shift, zoom, turn and shear), fitted to the motion vectors of
// blocks. The method is the "dominant motion" of Odobez and Bouthemy (1995). If an object covers
// most of the picture, the motion of the object is mistaken for camera motion.
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "curate/measures/motion.h"

namespace vfm::curate {

struct MotionSplit {
  float camera = 0;  ///< Mean length of the camera's motion, in frame diagonals.
  /// Mean length of the objects' motion. Motion below the error of motion vectors counts as 0.
  float object = 0;
};

/// Splits `motion`. `picture` is the second frame. Blocks without detail are assumed to move with
/// the camera. `aspect` is width divided by height as displayed.
MotionSplit split_motion(const MotionField& motion, const SmallPicture& picture, double aspect);

}  // namespace vfm::curate

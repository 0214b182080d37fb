// Splits the motion between two frames into camera motion and the rest.
//
// An affine field (shift, zoom, turn, shear) is fitted to the motion vectors of blocks from shot
// detection. Least squares over the blocks that follow the field are repeated until these blocks
// stay the same: the "dominant motion" of Odobez and Bouthemy (1995), with vectors for gradients.
// If an object covers most of the picture, its motion is taken for the camera's. Pure.
// Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "curate/measures/motion.h"

namespace vfm::curate {

struct MotionSplit {
  float camera = 0;  ///< mean length of the field over all blocks, in frame diagonals
  float object = 0;  ///< mean length of the vectors less the field, 0 if within the error
};

/// `picture` is the later frame; its blocks without detail follow the camera. `aspect` is width /
/// height as shown.
MotionSplit split_motion(const MotionField& motion, const SmallPicture& picture, double aspect);

}  // namespace vfm::curate

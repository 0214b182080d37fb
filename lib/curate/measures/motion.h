// Estimates motion between neighbouring frames by block matching on small pictures, with sub-cell
// precision.
//
// There are 64 blocks of 8 x 8 luma cells. Each block's shift is searched around zero and around
// the vectors of neighbours in space and time, and refined. If the fit is bad, all shifts within 8
// cells (an eighth of the picture) are tried. Vectors unlike their neighbours get a penalty.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "curate/small_picture.h"

namespace vfm::curate {

inline constexpr int kBlocks = 8;  ///< blocks a side

/// The shift of a block since the frame before, in cells: right and down are positive.
struct MotionVector {
  float x = 0, y = 0;
};

struct MotionField {
  std::array<MotionVector, kBlocks * kBlocks> vectors;  ///< row-major
  float difference = 0;  ///< mean absolute luma and chroma difference a cell, without motion
  float residual = 0;    ///< difference with blocks moved, which motion does not explain
};

/// Predicts vectors from the previous pair, so pass pairs in order.
class MotionEstimator {
 public:
  /// Returns the motion from `before` to `after`.
  const MotionField& estimate(const SmallPicture& before, const SmallPicture& after);

 private:
  struct Cell {
    int x = 0, y = 0;
  };
  std::array<Cell, kBlocks * kBlocks> cells_{};  // of the last pair, whole cells
  MotionField field_;
};

}  // namespace vfm::curate

// Estimates motion between neighbouring frames by matching blocks of small pictures.
//
// A picture has 64 blocks of 8 x 8 luma cells.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "curate/small_picture.h"

namespace vfm::curate {

inline constexpr int kBlocks = 8;  ///< Number of blocks in a row or column.

/// The shift of a block since the previous frame, in luma cells. Right and down are positive.
struct MotionVector {
  float x = 0, y = 0;
};

struct MotionField {
  std::array<MotionVector, kBlocks * kBlocks> vectors;  ///< Row-major vectors of the blocks.
  float difference = 0;  ///< Mean absolute difference of all cells, before blocks are moved.
  float residual = 0;    ///< Difference that remains after blocks are moved.
};

/// Call estimate() for each pair of neighbouring frames in order.
class MotionEstimator {
 public:
  /// Returns the motion from `before` to `after`.
  const MotionField& estimate(const SmallPicture& before, const SmallPicture& after);

 private:
  struct Cell {
    int x = 0, y = 0;
  };
  std::array<Cell, kBlocks * kBlocks> cells_{};  // vectors of the last pair in whole cells
  MotionField field_;
};

}  // namespace vfm::curate

// Measures of coding artefacts, exposure and focus from the luma of one full picture.
//
// Rows are sampled, so the cost is below that of reading the picture once. All except the grid of
// blocks is measured inside black bars. Pure. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "curate/measures/luma_plane.h"

namespace vfm::curate {

struct PictureQuality {
  /// sqrt(Var(L) / (20 Var(I))) of luma I and its Laplacian L (4 times the pixel less its four
  /// neighbours): the variance of the Laplacian (Pech-Pacheco et al. 2000; Pertuz et al. 2013,
  /// LAP4) over that of the picture, so that light and contrast do not count. White noise has 1,
  /// a picture without detail near 0, a flat one 0.
  double focus = 0;
  /// Share of pixels at most 2 of 255 above black, and at most 2 below white.
  double underexposed = 0, overexposed = 0;
  /// The mean difference of neighbours across edges of 8 x 8 blocks, divided by that inside blocks;
  /// 0.25 grey levels are added to both (Wang, Bovik and Evans 2000; Muijs and Kirenko 2005).
  /// 1 means no blocks. Blocks of pictures scaled afterwards are not detected.
  double blockiness = 1;
  /// Share of pixels in bands: at least 8 equal pixels of a row (or of a column: the larger share
  /// counts) between two more such runs, one 1 to 3 levels darker and one as much lighter. False
  /// contours as in CAMBI (Tandon et al. 2021), without its model of the eye.
  double banding = 0;
  /// Share of pixels more than 12 of 255 levels brighter, or darker, than the rows above and below,
  /// while every second row is alike, as in two fields with motion; deinterlacers test for combing
  /// so. Stripes of one row count, too.
  double combing = 0;
};

/// Measures the part `area` of the plane, at least 16 x 16. Throws nothing.
PictureQuality measure_quality(const LumaPlane& plane, const PixelArea& area);

}  // namespace vfm::curate

// Measures coding artefacts, exposure and focus from the luma of one full picture.
//
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "curate/measures/luma_plane.h"

namespace vfm::curate {

struct PictureQuality {
  /// The focus sqrt(Var(L) / (20 Var(I))) of luma I and its Laplacian L (Pech-Pacheco et al. 2000;
  /// Pertuz et al. 2013, LAP4). The focus does not depend on light and contrast. White noise gives
  /// 1, a picture without detail nearly 0, and a flat picture 0.
  double focus = 0;
  /// The share of pixels that are at most 2 of 255 levels above black, and the share of pixels that
  /// are at most 2 levels below white.
  double underexposed = 0, overexposed = 0;
  /// The mean difference of neighbouring pixels across the edges of 8 x 8 blocks, divided by the
  /// mean difference inside blocks (Wang, Bovik and Evans 2000; Muijs and Kirenko 2005). Both means
  /// are increased by 0.25 grey levels. Without visible blocks, the result is 1. If the picture was
  /// scaled after compression, blocks are not found.
  double blockiness = 1;
  /// The share of pixels in bands (false contours). Rows and columns are measured separately, and
  /// the larger share counts. A run has at least 8 equal pixels. A band is a run between a darker
  /// run and a lighter run. Both runs differ from the band by 1 to 3 levels.
  double banding = 0;
  /// The share of pixels in combs, which motion causes in interlaced frames. A pixel in a comb is
  /// brighter (or darker) than the pixels above and below by more than 12 of 255 levels. The pixel
  /// differs from the pixels two rows away by less than 12 levels. Stripes that are one row high
  /// also count as combs.
  double combing = 0;
};

/// Measures the part `area` of `plane`, at least 16 x 16 pixels. The 8 x 8 blocks begin at the top
/// left corner of `plane`.
PictureQuality measure_quality(const LumaPlane& plane, const PixelArea& area);

}  // namespace vfm::curate

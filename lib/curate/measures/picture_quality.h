// Measures of coding artefacts, exposure and focus from the luma of one full picture.
//
// Only some rows are read. Pure. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "curate/measures/luma_plane.h"

namespace vfm::curate {

struct PictureQuality {
  /// sqrt(Var(L) / (20 Var(I))) of luma I and its Laplacian L (4 times the pixel less its four
  /// neighbours). Var(L) is from Pech-Pacheco et al. 2000 and Pertuz et al. 2013, LAP4; division by
  /// Var(I) removes light and contrast. White noise gives 1, a picture without detail nearly 0, a
  /// flat picture 0.
  double focus = 0;
  /// Shares of pixels at most 2 of 255 levels above black, and of pixels at most 2 below white.
  double underexposed = 0, overexposed = 0;
  /// The mean difference of neighbours across edges of 8 x 8 blocks, divided by the mean inside
  /// blocks; 0.25 grey levels are added to both (Wang, Bovik and Evans 2000; Muijs and Kirenko
  /// 2005). 1 means no blocks. Blocks of a picture that was scaled later are not found.
  double blockiness = 1;
  /// The share of pixels in bands (false contours). A band is a run of at least 8 equal pixels in a
  /// row, between a darker and a lighter run of this kind, each 1 to 3 levels away. Columns are
  /// tried, too; the result is the larger share. CAMBI (Tandon et al. 2021) adds a model of the
  /// eye.
  double banding = 0;
  /// The share of pixels more than 12 of 255 levels brighter (or darker) than the rows above and
  /// below, while every second row is alike, as in interlaced fields with motion. Stripes of one
  /// row are included.
  double combing = 0;
};

/// Measures the part `area` of the plane, at least 16 x 16; blocks are counted from the plane's
/// corner. Throws nothing.
PictureQuality measure_quality(const LumaPlane& plane, const PixelArea& area);

}  // namespace vfm::curate

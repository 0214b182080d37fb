// Measures of a clip that need its full pictures: every eighth is measured.
//
// Memory holds sums for one clip and no picture. Pure: depends on the pictures alone.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "curate/measures/bars.h"
#include "curate/measures/luma_plane.h"
#include "curate/measures/picture_quality.h"
#include "curate/measures/still_overlay.h"
#include "curate/small_picture.h"

namespace vfm::curate {

/// The measures of a clip: means over the measured pictures. Boxes are in pixels as stored.
struct PictureMeasures {
  PictureQuality quality;
  double text_area = 0,
         text_area_most = 0;  ///< curate/measures/text_edges.h; mean, and of one picture
  double bars = 0;                           ///< share of the area outside `picture`
  PixelArea whole;                           ///< a picture of the clip
  PixelArea picture;                         ///< without black bars (curate/measures/bars.h)
  bool overlay_known = false;                ///< StillOverlay::can_tell()
  std::optional<PixelArea> overlay;
  /// `picture` after the smallest cut along one side that removes the overlay; the whole `picture`
  /// if that would cut off more than a quarter.
  PixelArea proposed_crop;
};

class PictureMeter {
 public:
  /// `small`: of the same picture. 8 bits.
  void add(const media::Frame& frame, const SmallPicture& small);
  /// Nothing for pictures with a side below 32 pixels, or without pictures.
  std::optional<PictureMeasures> result() const;

 private:
  PictureQuality sum_;
  double text_ = 0, text_most_ = 0;
  std::int64_t pictures_ = 0;
  PixelArea whole_;  // of the first picture
  BarFinder bars_;
  StillOverlay overlay_;
  ReducedLuma reduced_;
  std::vector<std::uint8_t> room_;
};

}  // namespace vfm::curate

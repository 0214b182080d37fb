// Measures of a clip that need full pictures: quality, text, bars, overlays. The caller gives every
// eighth picture.
// Keeps sums, no pictures. Pure. Thread-safety: one thread at a time.
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

/// Means over the measured pictures. Boxes are in pixels as stored.
struct PictureMeasures {
  PictureQuality quality;
  double text_area = 0,
         text_area_most = 0;   ///< text_area(): mean, and highest of a picture
  double bars = 0;             ///< share of the area outside `picture`
  PixelArea whole;             ///< the whole picture
  PixelArea picture;           ///< without black bars (curate/measures/bars.h)
  bool overlay_known = false;  ///< StillOverlay::can_tell()
  std::optional<PixelArea> overlay;
  /// `picture` less the smallest strip along one side that contains the overlay; all of `picture`
  /// if that would remove more than a quarter.
  PixelArea proposed_crop;
};

class PictureMeter {
 public:
  /// Adds a picture. `frame` has 8 bits, and `small` is made from it.
  void add(const media::Frame& frame, const SmallPicture& small);
  /// Returns no value without pictures, or if a side is below 32 pixels.
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

// Measures quality, text, black bars and overlays in full pictures of a clip. The caller passes
// every eighth picture. Memory does not grow with the number of pictures.
// Pure. Thread-safety: one thread at a time.
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

/// The mean of each measure over the measured pictures. Areas are in pixels as stored.
struct PictureMeasures {
  PictureQuality quality;
  /// The mean and the largest text_area() of the pictures.
  double text_area = 0, text_area_most = 0;
  double bars = 0;  ///< Share of the picture that black bars cover.
  PixelArea whole;
  PixelArea picture;           ///< Picture without black bars (curate/measures/bars.h).
  bool overlay_known = false;  ///< Result of StillOverlay::can_tell().
  std::optional<PixelArea> overlay;
  /// The part of `picture` that remains when a strip along one side is cut off. The strip is the
  /// smallest one that contains the overlay. If the strip is more than a quarter of `picture`, the
  /// crop is all of `picture`.
  PixelArea proposed_crop;
};

class PictureMeter {
 public:
  /// Adds a picture. `frame` has 8 bits. `small` is the small picture of `frame`.
  void add(const media::Frame& frame, const SmallPicture& small);
  /// Returns the measures, or nullopt if there are no pictures or a side is below 32 pixels.
  std::optional<PictureMeasures> result() const;

 private:
  PictureQuality sum_;
  double text_ = 0, text_most_ = 0;
  std::int64_t pictures_ = 0;
  PixelArea whole_;  // area of the first picture
  BarFinder bars_;
  StillOverlay overlay_;
  ReducedLuma reduced_;
  std::vector<std::uint8_t> room_;
};

}  // namespace vfm::curate

// Measures motion, light, colour and sharpness of a clip, frame by frame.
//
// Motion, light and colour come from the small pictures of shot detection. Pictures are measured as
// stored, before rotation.
// Pure. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "curate/measures/motion.h"
#include "curate/measures/picture_meter.h"
#include "curate/shots/frame_features.h"

namespace vfm::curate {

struct ClipMeasures {
  /// The mean distance that a point of the picture moves from one frame to the next, in frame
  /// diagonals. At 720p, 0.002 is about 3 pixels a frame.
  double motion = 0;
  double motion_per_second = 0;  ///< `motion` multiplied by the frame rate.
  double brightness = 0;         ///< Mean luma, 0..1.
  double contrast = 0;           ///< Mean standard deviation of luma in a frame, 0..0.5.
  double saturation = 0;         ///< Mean HSV saturation, 0..1.
  double sharpness = 0;          ///< Mean row_sharpness(), 0..1.
  double black = 0;              ///< Fraction of black frames.
  double frozen = 0;             ///< Fraction of frames that repeat the previous frame.
  /// The fraction of frames that were repeated to increase the frame rate.
  double doubled = 0;
  double camera_motion = 0;  ///< The part of `motion` that camera motion explains.
  /// The part of `motion` that objects cause (curate/measures/camera_split.h).
  double object_motion = 0;
  struct Color {
    std::string rgb;   ///< "#rrggbb".
    double share = 0;  ///< Share of the area, 0..1.
  };
  std::vector<Color> colors;                ///< At most three colours, the largest share first.
  std::optional<PictureMeasures> pictures;  ///< Result of PictureMeter::result().
};

struct FrameMeasures {
  float brightness = 0, contrast = 0, saturation = 0, motion = 0;
  float camera = 0, object = 0;  // parts of `motion`
  float difference = 0;          // difference from the previous frame in grey levels
  bool black = false, frozen = false;
};
/// Measures a frame. `motion` is the motion since the previous frame. `aspect` is width divided by
/// height as displayed.
FrameMeasures measure_frame(const FrameFeatures& features, const MotionField& motion,
                            double aspect);

/// Returns the mean of |p(x-1) - 2 p(x) + p(x+1)| / 255 over sixteen rows of luma, or of green for
/// packed RGB.
float row_sharpness(const media::Frame& frame);

class ClipMeter {
 public:
  /// Adds the next frame of the clip. Ignores `motion` of the first frame.
  void add(const FrameMeasures& measures, const SmallPicture& picture, const media::Frame& frame);
  /// Returns true if add() will read the pixels of the next frame.
  bool looks() const { return frames_ % kSparse == 0; }
  /// Returns the measures of the clip, which is `seconds` long. If there are no frames, all
  /// measures are 0.
  ClipMeasures result(double seconds) const;

 private:
  static constexpr int kSparse = 8;  // colours and sharpness are measured in every eighth frame
  static constexpr int kBins = 4 * 16 * 16;
  struct Bin {
    std::uint64_t count = 0, y = 0, u = 0, v = 0;
  };
  std::int64_t frames_ = 0, black_ = 0, frozen_ = 0, doubled_ = 0, sharp_frames_ = 0;
  float last_ = 0, before_last_ = 0;  // differences of the last two frames
  double motion_ = 0, camera_ = 0, object_ = 0, brightness_ = 0, contrast_ = 0, saturation_ = 0,
         sharpness_ = 0;
  std::vector<Bin> bins_ = std::vector<Bin>(kBins);
  PictureMeter pictures_;
};

}  // namespace vfm::curate

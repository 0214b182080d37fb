// Measures motion, light, colour and sharpness of a clip, frame by frame, while the clip is cut.
//
// All measures except sharpness come from the small pictures of shot detection. Pictures are used
// as stored. Pure. Thread-safety: one thread at a time.
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
  /// diagonals, over the whole area and clip. 0 means that nothing moves, and 0.002 about 3 pixels
  /// a frame at 720p.
  double motion = 0;
  double motion_per_second = 0;  ///< `motion` times frame rate: comparable between rates
  double brightness = 0;         ///< mean luma, 0..1
  double contrast = 0;           ///< mean over frames of the standard deviation of luma, 0..0.5
  double saturation = 0;         ///< mean HSV saturation, 0..1
  double sharpness = 0;          ///< mean row_sharpness(), 0..1: detail at full size
  double black = 0;              ///< fraction of frames that are black
  double frozen = 0;             ///< fraction of frames that repeat the frame before
  /// The fraction of repeats from a conversion to a higher frame rate: frames whose difference from
  /// the frame before is below a fifth of both neighbours' differences.
  double doubled = 0;
  double camera_motion = 0;  ///< the part of `motion` that camera motion explains
  double object_motion = 0;  ///< the rest of `motion` (curate/measures/camera_split.h)
  struct Color {
    std::string rgb;   ///< "#rrggbb"
    double share = 0;  ///< of the area, 0..1
  };
  std::vector<Color> colors;                ///< at most three, largest share first
  std::optional<PictureMeasures> pictures;  ///< no value if frames are too small
};

/// The measures of one frame.
struct FrameMeasures {
  float brightness = 0, contrast = 0, saturation = 0, motion = 0;
  float camera = 0, object = 0;  // parts of motion
  float difference = 0;          // from the frame before, grey levels
  bool black = false, frozen = false;
};
/// Measures a frame. `motion` is from the frame before. `aspect` is width / height as shown.
FrameMeasures measure_frame(const FrameFeatures& features, const MotionField& motion,
                            double aspect);

/// Returns the mean |p(x-1) - 2 p(x) + p(x+1)| / 255 over sixteen rows of luma (of green for packed
/// RGB).
float row_sharpness(const media::Frame& frame);

/// Adds up the measures of one clip.
class ClipMeter {
 public:
  /// Adds the next frame of the clip. The motion into the first frame is left out.
  void add(const FrameMeasures& measures, const SmallPicture& picture, const media::Frame& frame);
  /// Returns whether add() will read the samples of the next frame.
  bool looks() const { return frames_ % kSparse == 0; }
  /// Returns the measures of the clip, `seconds` long. Without frames, all measures are zero.
  ClipMeasures result(double seconds) const;

 private:
  static constexpr int kSparse = 8;          // frames for each look at colours and sharpness
  static constexpr int kBins = 4 * 16 * 16;  // luma, u, v
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

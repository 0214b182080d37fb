// Finds the changes of shot of a video, frame by frame, by the recipe's detector: by the looks of
// frames (curate/shots/shot_detector.h), or by a network (curate/shots/window_detector.h), which
// gets frames as the ffmpeg program scales them. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "curate/measures/motion.h"
#include "curate/shots/frame_features.h"
#include "curate/shots/shot_detector.h"
#include "curate/shots/window_detector.h"
#include "media/colour/scaler.h"
#include "media/decode/decoder.h"

namespace vfm::clip {

class ShotFinder {
 public:
  /// `info`: the video's stream; `model`: for Detector::transnetv2.
  ShotFinder(const curate::ShotOptions& options, const curate::ChangeModel& model,
             const media::StreamInfo& info);

  /// The next frame, not in HDR, and its features. Throws what the model does.
  void push(const media::Frame& frame, const curate::FrameFeatures& features);
  void finish();

  /// The same as in curate::ShotDetector.
  std::vector<curate::ShotChange> take();
  std::int64_t settled() const;
  std::vector<curate::Judgement> take_judgements();
  const curate::MotionField& motion() const;

  /// A change so long that its frames need not wait: those from `begin` on belong to no shot.
  struct OpenChange {
    curate::ChangeType type = curate::ChangeType::fade;
    std::int64_t begin = 0;
  };
  std::optional<OpenChange> open_change() const;

 private:
  // One of the two.
  std::optional<curate::ShotDetector> looks_;
  std::optional<curate::WindowDetector> windows_;

  // Beside windows_.
  media::ScaleOptions scale_;
  media::Scaler scaler_;
  media::RgbImage small_;
  curate::MotionEstimator estimator_;
  curate::MotionField motion_;
  std::optional<curate::SmallPicture> before_;
};

}  // namespace vfm::clip

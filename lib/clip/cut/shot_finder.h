// Finds changes of shot in a video by the recipe's detector. The detector compares the looks of
// frames (curate/shots/shot_detector.h), or runs a network (curate/shots/window_detector.h) on
// scaled frames. Thread-safety: one thread at a time.
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
  /// Makes the detector that `options` selects. Detector::transnetv2 uses `model`.
  ShotFinder(const curate::ShotOptions& options, const curate::ChangeModel& model,
             const media::StreamInfo& info);

  /// Adds the next frame and its features. The frame must not be HDR. Throws what the model throws.
  void push(const media::Frame& frame, const curate::FrameFeatures& features);
  void finish();

  /// These functions act as in curate::ShotDetector.
  std::vector<curate::ShotChange> take();
  std::int64_t settled() const;
  std::vector<curate::Judgement> take_judgements();
  const curate::MotionField& motion() const;

  /// A long change of shot that has not ended yet. Frames from `begin` on belong to no shot, so
  /// they need not wait for the end of the change.
  struct OpenChange {
    curate::ChangeType type = curate::ChangeType::fade;
    std::int64_t begin = 0;
  };
  std::optional<OpenChange> open_change() const;

 private:
  // Exactly one of looks_ and windows_ is set.
  std::optional<curate::ShotDetector> looks_;
  std::optional<curate::WindowDetector> windows_;

  media::ScaleOptions scale_;
  media::Scaler scaler_;
  media::RgbImage small_;
  curate::MotionEstimator estimator_;
  curate::MotionField motion_;
  std::optional<curate::SmallPicture> before_;
};

}  // namespace vfm::clip

// SPDX-License-Identifier: Apache-2.0
#include "clip/cut/shot_finder.h"

namespace vfm::clip {

ShotFinder::ShotFinder(const curate::ShotOptions& options, const curate::ChangeModel& model,
                       const media::StreamInfo& info) {
  if (options.detector != curate::Detector::transnetv2) {
    looks_.emplace(options);
    return;
  }
  windows_.emplace(model, options.used_threshold(), options.explain);
  scale_ = {.rotation = info.rotation,
            .mirror = info.mirror,
            .width = curate::kChangeWidth,
            .height = curate::kChangeHeight,
            .bicubic = true};
}

void ShotFinder::push(const media::Frame& frame, const curate::FrameFeatures& features) {
  if (looks_) return looks_->push(features);
  if (before_) motion_ = estimator_.estimate(*before_, features.picture);
  before_ = features.picture;
  scaler_.to_rgb(frame, scale_, small_);
  windows_->push(small_.pixels);
}

void ShotFinder::finish() {
  if (looks_)
    looks_->finish();
  else
    windows_->finish();
}

std::vector<curate::ShotChange> ShotFinder::take() {
  return looks_ ? looks_->take() : windows_->take();
}

std::vector<curate::Judgement> ShotFinder::take_judgements() {
  return looks_ ? looks_->take_judgements() : windows_->take_judgements();
}

std::int64_t ShotFinder::settled() const {
  return looks_ ? looks_->settled() : windows_->settled();
}

const curate::MotionField& ShotFinder::motion() const {
  return looks_ ? looks_->motion() : motion_;
}

std::optional<ShotFinder::OpenChange> ShotFinder::open_change() const {
  if (looks_) {
    const std::optional<std::int64_t> begin = looks_->open_fade();
    return begin ? std::optional(OpenChange{curate::ChangeType::fade, *begin}) : std::nullopt;
  }
  const std::optional<std::int64_t> begin = windows_->open_change();
  return begin ? std::optional(OpenChange{curate::ChangeType::transition, *begin}) : std::nullopt;
}

}  // namespace vfm::clip

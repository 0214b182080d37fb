// Finds changes of shot with a network that sees windows of 100 frames, such as TransNet V2.
//
// Windows begin every 50 frames, and only the middle 50 answers of each window count. The video's
// first frame is repeated before the video, its last frame after the video. A run of frames with
// probabilities above the threshold is one change. The first frame of the run is the last of the
// old shot; the new shot begins after the run.
// Source: soCzech/TransNetV2, inference/transnetv2.py (predict_frames, predictions_to_scenes).
// Pure except for the network. Constant memory: a window. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "curate/shots/shot_detector.h"

namespace vfm::curate {

/// Returns the probability of a change of shot for each frame of a window. Frames are RGB, 8 bits,
/// row-major, kChangeWidth x kChangeHeight. Any thread may call it.
using ChangeModel = std::function<std::vector<float>(std::span<const std::uint8_t> frames)>;
inline constexpr int kChangeWidth = 48, kChangeHeight = 27;

class WindowDetector {
 public:
  static constexpr std::int64_t kWindow = 100, kStride = 50, kBefore = 25;
  /// The delay of an answer, in frames.
  static constexpr std::int64_t kLag = kWindow - kBefore;
  /// The most frames of a change that wait for its end; frames of a longer change are released, and
  /// belong to no shot. No frame therefore waits for more than kShotLag other frames.
  static constexpr std::int64_t kHeld = kShotLag - kLag;

  /// With `explain`, keeps judgements for take_judgements().
  WindowDetector(ChangeModel model, double threshold, bool explain = false);

  /// Adds the next frame in presentation order. Throws what the model throws.
  void push(std::span<const std::uint8_t> frame);
  void finish();

  /// Returns the changes as ShotDetector::take() does. A change over several frames is a
  /// `transition`, with `frame` just after its middle. If the video begins with a change, its `end`
  /// is 0; if the video ends with a change, its `begin` is the number of frames. There is no change
  /// if all frames are above the threshold.
  std::vector<ShotChange> take();
  /// Returns the judgement of each frame after the first, in order: `cut` if the network says that
  /// the previous frame ends a shot or is in a change, otherwise `below`. The score is the
  /// probability.
  std::vector<Judgement> take_judgements();
  std::int64_t settled() const;
  /// Returns the first frame of a present change longer than kHeld. This frame and later frames
  /// belong to no shot.
  std::optional<std::int64_t> open_change() const;

 private:
  void judge();
  void see(std::int64_t frame, float probability);
  void add(std::int64_t begin);
  std::int64_t end_of_run() const { return *run_ == 0 ? 0 : *run_ + 1; }

  ChangeModel model_;
  double threshold_;
  bool explain_;
  std::vector<std::uint8_t> window_;  // first frames of the window
  std::int64_t frames_ = 0, judged_ = 0;
  std::optional<std::int64_t> run_;  // first frame of the run that is under way
  float highest_ = 0;                // in that run
  bool finished_ = false;
  std::vector<ShotChange> certain_;
  std::vector<Judgement> judgements_;  // with explain_
};

}  // namespace vfm::curate

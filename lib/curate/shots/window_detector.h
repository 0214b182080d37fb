// Finds changes of shot with a network that sees windows of 100 frames, such as TransNet V2.
//
// Windows begin every 50 frames, and only the answers for the middle 50 frames are used. Copies of
// the first and last frame fill the windows at the ends of the video. A run of frames with
// probabilities above the threshold is one change. The first frame of the run is the last frame of
// the old shot. The new shot begins after the run.
// Source: soCzech/TransNetV2, inference/transnetv2.py (predict_frames, predictions_to_scenes).
// Memory is constant: one window. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "curate/shots/shot_detector.h"

namespace vfm::curate {

/// A function that returns the probability of a change of shot for each frame of a window. Frames
/// are RGB, 8 bits, row-major, kChangeWidth x kChangeHeight. Any thread may call the function.
using ChangeModel = std::function<std::vector<float>(std::span<const std::uint8_t> frames)>;
inline constexpr int kChangeWidth = 48, kChangeHeight = 27;

class WindowDetector {
 public:
  static constexpr std::int64_t kWindow = 100, kStride = 50, kBefore = 25;
  /// The delay in frames after which a probability is known.
  static constexpr std::int64_t kLag = kWindow - kBefore;
  /// The largest number of frames that wait for the end of a change. Frames of a longer change do
  /// not wait, and belong to no shot.
  static constexpr std::int64_t kHeld = kShotLag - kLag;

  /// If `explain` is true, keeps judgements for take_judgements().
  WindowDetector(ChangeModel model, double threshold, bool explain = false);

  /// Adds the next frame in presentation order. Throws the exceptions of the model.
  void push(std::span<const std::uint8_t> frame);
  void finish();

  /// Returns new changes as ShotDetector::take() does. A change over several frames is a
  /// `transition`, and `frame` is just after the middle of the change. If the video begins with a
  /// change, `end` of the change is 0. If the video ends with a change, `begin` of the change is
  /// the number of frames. If the probabilities of all frames are above the threshold, there is no
  /// change.
  std::vector<ShotChange> take();
  /// Returns the judgement of each frame after the first, in order. The verdict is `cut` if the
  /// network finds a change at the previous frame, and otherwise `below`. The score is the
  /// probability.
  std::vector<Judgement> take_judgements();
  std::int64_t settled() const;
  /// Returns the first frame of an unfinished change longer than kHeld, or nullopt. From this frame
  /// on, frames belong to no shot.
  std::optional<std::int64_t> open_change() const;

 private:
  void judge();
  void see(std::int64_t frame, float probability);
  void add(std::int64_t begin);
  std::int64_t end_of_run() const { return *run_ == 0 ? 0 : *run_ + 1; }

  ChangeModel model_;
  double threshold_;
  bool explain_;
  std::vector<std::uint8_t> window_;
  std::int64_t frames_ = 0, judged_ = 0;
  std::optional<std::int64_t> run_;  // first frame of the unfinished run
  float highest_ = 0;                // highest probability in the run
  bool finished_ = false;
  std::vector<ShotChange> certain_;
  std::vector<Judgement> judgements_;
};

}  // namespace vfm::curate

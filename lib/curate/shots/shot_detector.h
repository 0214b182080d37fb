// Finds the changes of shot, abrupt or gradual, in a stream of frames.
//
// Pure. Constant memory: small pictures of the last kShotLag frames. About 50 microseconds a frame.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "curate/measures/motion.h"
#include "curate/shots/frame_features.h"
#include "curate/shots/gradual.h"

namespace vfm::curate {

/// The method that finds cuts. Methods have these scores (and default thresholds):
///   combined   the change of structure and of cells that motion does not explain, 0..1.35, less
///              the change in the frames around it (0.38); if only colours show a cut, the score
///              equals the threshold
///   transnetv2 the probability of a network, 0..1 (0.5); for WindowDetector, not ShotDetector
enum class Detector { combined, transnetv2 };
double default_threshold(Detector detector);

struct ShotOptions {
  Detector detector = Detector::combined;
  double threshold = 0;   ///< 0: the detector's default
  bool gradual = true;    ///< whether to find fades, dissolves, wipes and transitions
  double strictness = 1;  ///< higher values find fewer changes other than fades
  bool explain = false;   ///< keep judgements for take_judgements()

  double used_threshold() const { return threshold > 0 ? threshold : default_threshold(detector); }
};

/// `transition`: any other gradual change.
enum class ChangeType { cut, fade, dissolve, wipe, transition };
const char* name_of(ChangeType type);

/// A change of shot. Frames [end, begin) belong to neither shot: frames of a dissolve, wipe or
/// transition, or frames of one colour between two fades. A cut has no such frames.
struct ShotChange {
  ChangeType type = ChangeType::cut;
  std::int64_t end = 0;    ///< one past the last frame of the old shot
  std::int64_t begin = 0;  ///< first frame of the new shot
  std::int64_t frame = 0;  ///< where viewers see the new shot begin: cut: `begin`; fade: its first
                           ///< visible frame; others: the first with more of the new shot
  float score = 0;         ///< cut: the detector's score; otherwise 0..1
};

/// Scores of two neighbouring frames.
struct PairScore {
  float structure = 0, residual = 0;
  float combined = 0;    ///< before other pairs are considered
  float difference = 0;  ///< plain, grey levels
};

/// The verdict on a frame as the first frame of a shot, before gradual changes are considered.
struct Judgement {
  /// below: below the threshold; alike: the picture hardly changes; interrupts: the scene soon
  /// returns; cut: a cut, unless it is part of a gradual change or the scene returns gradually.
  enum class Verdict { below, alike, interrupts, cut };
  std::int64_t frame = 0;
  float score = 0;  ///< the detector's score; below 0: a neighbour's score is higher
  Verdict verdict = Verdict::below;
};

/// The delay in frames after which a change, or the shot of a frame, is known.
inline constexpr int kShotLag = kGradualLag + 8;

class ShotDetector {
 public:
  explicit ShotDetector(const ShotOptions& options = {});
  /// Adds a frame, in presentation order; frames are numbered by calls, from 0.
  void push(const FrameFeatures& features);
  void finish();

  /// Returns the changes that are certain and not yet taken, in order. `end` is 0 if the video
  /// fades in from one colour before its first shot.
  std::vector<ShotChange> take();
  /// With ShotOptions::explain, returns the judgement of each frame once, in order, a few frames
  /// late.
  std::vector<Judgement> take_judgements();
  /// Returns a frame number. Changes that take() has not yet returned lie after this frame.
  std::int64_t settled() const;
  /// During a long fade, returns the first of the frames that belong to no shot.
  std::optional<std::int64_t> open_fade() const;

  /// Returns the motion between the last two frames pushed.
  const MotionField& motion() const { return motion_; }

 private:
  static constexpr int kRing = 32;
  static std::size_t slot(std::int64_t i) { return static_cast<std::size_t>(i & (kRing - 1)); }
  float spike(std::int64_t frame) const;
  bool same_around(std::int64_t before, std::int64_t frame, std::int64_t after) const;
  bool same_restless(std::int64_t before, std::int64_t frame, std::int64_t after) const;
  bool one_view(std::int64_t frame) const;
  bool swings(std::int64_t frame) const;
  bool is_short_shot(std::int64_t begin, std::int64_t end) const;
  bool begins_restless(std::int64_t frame) const;
  bool interrupts(std::int64_t frame) const;
  void judge_cut(std::int64_t frame);
  bool interrupts(const GradualChange& change) const;
  std::optional<std::int64_t> comes_back(std::int64_t end, std::int64_t begin) const;
  void collect_gradual();
  void merge(std::int64_t until);

  ShotOptions options_;
  double threshold_;
  std::vector<FrameFeatures> ring_ = std::vector<FrameFeatures>(kRing);
  std::vector<PairScore> scores_ = std::vector<PairScore>(kRing);
  MotionEstimator estimator_;
  MotionField motion_;
  GradualDetector gradual_;
  std::int64_t frames_ = 0, judged_ = 1, last_begin_ = 0;
  bool finished_ = false;
  std::vector<ShotChange> cuts_;        // spikes, not yet given out
  std::vector<GradualChange> changes_;  // gradual, not yet given out
  std::vector<ShotChange> certain_;
  std::vector<Judgement> judgements_;  // with options_.explain
};

}  // namespace vfm::curate

// Finds the changes of shot, abrupt or gradual, in a stream of frames.
//
// Memory is constant: small pictures of the last kShotLag frames. A frame takes about 50
// microseconds.
// Pure. Thread-safety: one thread at a time.
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

/// The method that finds cuts. Each method has a score and a default threshold:
///   combined    The change between two frames, minus the change around these frames. A change is
///               the mean of two parts: changed structure, and differences that motion does not
///               explain. The score is 0 to 1.35. If only colours show a cut, the score equals
///               the threshold. Default threshold: 0.38.
///   transnetv2  The probability that a network returns, 0 to 1. Default threshold: 0.5. Only
///               WindowDetector uses this method.
enum class Detector { combined, transnetv2 };
double default_threshold(Detector detector);

struct ShotOptions {
  Detector detector = Detector::combined;
  double threshold = 0;   ///< Threshold of the score. 0 means default_threshold().
  bool gradual = true;    ///< If true, finds fades, dissolves, wipes and transitions.
  double strictness = 1;  ///< Strictness of the tests for gradual changes other than fades.
  bool explain = false;   ///< If true, keeps judgements for take_judgements().

  double used_threshold() const { return threshold > 0 ? threshold : default_threshold(detector); }
};

/// A `transition` is a gradual change other than a fade, dissolve or wipe.
enum class ChangeType { cut, fade, dissolve, wipe, transition };
const char* name_of(ChangeType type);

/// A change of shot. Frames [end, begin) belong to neither shot. A cut has no such frames.
struct ShotChange {
  ChangeType type = ChangeType::cut;
  std::int64_t end = 0;    ///< One past the last frame of the old shot.
  std::int64_t begin = 0;  ///< First frame of the new shot.
  /// The frame at which viewers see the new shot begin. For a cut, `frame` equals `begin`. For a
  /// fade, `frame` is the first visible frame of the new shot. For other changes, `frame` is the
  /// first frame that shows more of the new shot than of the old.
  std::int64_t frame = 0;
  float score = 0;  ///< For a cut, the detector's score. For other changes, 0 to 1.
};

struct PairScore {
  float structure = 0, residual = 0;
  float combined = 0;    ///< Score before other pairs of frames are considered.
  float difference = 0;  ///< plain_difference(), in grey levels.
};

/// The verdict whether a frame begins a shot, before gradual changes are considered.
struct Judgement {
  ///   below       The score is below the threshold.
  ///   alike       The picture hardly changes.
  ///   interrupts  The scene before this frame soon returns.
  ///   cut         The frame is a cut, unless it is part of a gradual change or the scene returns
  ///               gradually.
  enum class Verdict { below, alike, interrupts, cut };
  std::int64_t frame = 0;
  float score = 0;  ///< Score of the detector, or below 0 if a neighbour has a higher score.
  Verdict verdict = Verdict::below;
};

/// The delay in frames after which a change, or the shot of a frame, is known.
inline constexpr int kShotLag = kGradualLag + 8;

class ShotDetector {
 public:
  explicit ShotDetector(const ShotOptions& options = {});
  /// Adds the next frame in presentation order. The first frame has number 0.
  void push(const FrameFeatures& features);
  void finish();

  /// Returns the certain changes that take() has not yet returned, in order. If the video fades in
  /// from one colour, `end` of the first change is 0.
  std::vector<ShotChange> take();
  /// Returns the judgement of each frame once, in order, with a delay of a few frames. Returns an
  /// empty list if ShotOptions::explain is false.
  std::vector<Judgement> take_judgements();
  /// Returns a frame number. All changes that take() has not yet returned lie after this frame.
  std::int64_t settled() const;
  /// If a long fade is not complete, returns the first frame that belongs to no shot. Otherwise
  /// returns nullopt.
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
  std::vector<ShotChange> cuts_;        // not yet in certain_
  std::vector<GradualChange> changes_;  // not yet in certain_
  std::vector<ShotChange> certain_;
  std::vector<Judgement> judgements_;
};

}  // namespace vfm::curate

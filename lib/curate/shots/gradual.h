// Finds gradual changes of shot (curate/shots/gradual_change.h): dissolves, wipes, fades through
// one colour, and other transitions. Memory is constant: one mebibyte for the last 128 frames.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "curate/measures/motion.h"
#include "curate/shots/frame_features.h"
#include "curate/shots/gradual_change.h"
#include "curate/shots/wipe.h"

namespace vfm::curate {

class GradualDetector {
 public:
  /// A higher `strictness` gives fewer dissolves, wipes and transitions. Fades do not depend on
  /// `strictness`. The normal value is 1.
  explicit GradualDetector(double strictness = 1) : strictness_(static_cast<float>(strictness)) {}
  /// Adds the next frame. `motion` is the motion since the previous frame.
  void push(const FrameFeatures& features, const MotionField& motion);
  void finish();
  /// Returns the changes found since the last call, in no particular order.
  std::vector<GradualChange> take();
  /// If the last frames have one colour and a fade led to this colour, returns the first of these
  /// frames. Otherwise returns nullopt.
  std::optional<std::int64_t> open_fade() const;
  /// Returns true if frames i and k resemble each other much more than frames i and `away` do.
  /// Returns false if a frame is not among the last 127 frames.
  bool same_scene(std::int64_t i, std::int64_t k, std::int64_t away) const;
  /// Returns true if more than three quarters of frame i are the same as in the previous frame.
  bool most_stays(std::int64_t i) const { return share_changed(i - 1, i) < 0.25f; }
  /// Returns true if both frames show the same plain colour other than black.
  bool same_ground(std::int64_t i, std::int64_t k) const;
  /// Returns true if edges (same_view.h) or colours show the same scene before and after the
  /// change.
  bool one_view(const GradualChange& change) const;
  /// Returns true if edges show that frames i and k show one view. Returns false if a frame is not
  /// in memory.
  bool one_view(std::int64_t i, std::int64_t k) const;

 private:
  static constexpr int kCells = 256 + 64 + 64;
  static constexpr float kPlain = 36.f * kCells;  // energy of a picture with little detail
  struct Relief {                                 // content of an area, 0 outside the area
    alignas(32) std::array<float, kCells> cells;  // cells minus the means of the planes
    float energy = 0;
  };
  struct Tiny : Relief {  // Relief of `area`
    ActiveArea area;
    float residual = 0;
    MotionVector moved;
    SmallPicture picture;
    CoarsePicture coarse;
    std::array<float, 3> mean{};
    float variance = 0;  // variance of all cells around `mean`
    bool uniform = false;
  };
  struct PartsFit {
    float misfit = 0, step = 0, mixed = 0;
    float at_once = 0;  // 1 if all parts change equally far, 0 if each part shows one picture
  };
  struct Candidate {
    std::int64_t a = 0, b = 0;
    float quality = 0;
    GradualChange change;
    bool no_camera = false;  // whether the change is surely not camera motion
    bool through = false;    // whether the new picture opens from one colour
    bool closes = false;     // whether the old picture closes to black
  };
  static constexpr int kRing = 128;  // a power of two above kGradualLag
  static constexpr int kAfter = 3;   // a judgement needs this many frames after a window
  static constexpr float kBest = 0.75f;
  static constexpr float kBlack = 16;  // luma of a black frame is below this limit

  Tiny& at(std::int64_t index) { return ring_[static_cast<std::size_t>(index & (kRing - 1))]; }
  const Tiny& at(std::int64_t index) const {
    return ring_[static_cast<std::size_t>(index & (kRing - 1))];
  }
  static Relief relief_of(const SmallPicture& picture, const ActiveArea& area);
  const Relief& within(const ActiveArea& area, std::int64_t index, Relief& scratch) const;
  static float dot(const Relief& a, const Relief& b);
  static float correlation(const Relief& a, const Relief& b);
  std::optional<Candidate> judge_window(std::int64_t a, std::int64_t b) const;
  std::optional<Candidate> judge_wipe(std::int64_t a, std::int64_t b) const;
  std::optional<Candidate> judge_statistics(std::int64_t a, std::int64_t b) const;
  std::optional<Candidate> judge_transition(std::int64_t a, std::int64_t b) const;
  static float quality_of(float misfit, std::int64_t length);
  std::optional<PartsFit> fit_parts(std::int64_t a, std::int64_t b) const;
  std::pair<std::int64_t, std::int64_t> trimmed(std::int64_t from, std::int64_t to) const;
  float unrest(std::int64_t a, std::int64_t b) const;
  bool ends_rest(std::int64_t a, std::int64_t b) const;
  std::optional<Candidate> judge_parts(std::int64_t a, std::int64_t b) const;
  std::optional<Candidate> judge_crop(std::int64_t a, std::int64_t b) const;
  MotionVector passes(std::int64_t a, std::int64_t b) const;
  std::optional<Candidate> judge_moved(std::int64_t a, std::int64_t b) const;
  std::optional<Candidate> judge_lines(std::int64_t a, std::int64_t b, bool rows,
                                       bool squeeze) const;
  static float change(const Tiny& a, const Tiny& b);
  bool same_colours(std::int64_t i, std::int64_t k, std::int64_t away) const;
  bool keeps_colours(const GradualChange& change) const;
  bool moves(std::int64_t a, std::int64_t b) const;
  float share_changed(std::int64_t a, std::int64_t b) const;
  bool enters(std::int64_t a, std::int64_t b) const;
  bool camera_passes(std::int64_t a, std::int64_t b) const;
  bool leaps(std::int64_t a, std::int64_t b) const;
  float between(std::int64_t a, std::int64_t middle, std::int64_t b, float alpha) const;
  bool ends_hold(std::int64_t a, std::int64_t b) const;
  bool best_is_over(std::int64_t b) const;
  void search_dissolves(std::int64_t now);
  void keep_best();
  void follow_uniform_runs(std::int64_t now);
  void follow_light(std::int64_t now);
  void stay_plain(std::int64_t now);
  bool contrast_ramps(std::int64_t from, int direction, std::int64_t last) const;
  bool light_ramps(std::int64_t from, int direction, std::int64_t last) const;
  void close_run(std::int64_t end, std::int64_t last);

  float strictness_;
  std::vector<Tiny> ring_ = std::vector<Tiny>(kRing);
  std::int64_t frames_ = 0;
  std::optional<Candidate> best_;
  std::int64_t best_end_ = 0;                         // Candidate::b of the last change
  std::optional<std::int64_t> run_begin_, run_end_;   // the current or last run of one colour
  bool run_faded_in_ = false, run_cut_into_ = false;  // whether a fade or a cut led into the run
  bool run_is_shot_ = false;                          // whether the fade into the run was returned
  std::int64_t run_resumes_ = -1;
  std::int64_t last_black_ = -1;
  std::int64_t ground_end_ = -1;    // one past the last frame of the previous run
  std::int64_t ground_begin_ = -1;  // first frame of the previous run
  std::vector<GradualChange> found_;
};

}  // namespace vfm::curate

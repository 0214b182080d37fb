// Finds gradual changes of shot: dissolves, wipes, fades through black, white or any one colour,
// and other transitions. gradual_change.h explains how.
// Constant memory: a mebibyte for the last 128 frames. Thread-safety: one thread.
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
  /// `strictness` says how well changes other than fades must fit. 1 is normal; higher values find
  /// fewer changes.
  explicit GradualDetector(double strictness = 1) : strictness_(static_cast<float>(strictness)) {}
  /// Adds a frame. `motion` is the motion since the frame before.
  void push(const FrameFeatures& features, const MotionField& motion);
  void finish();
  /// Returns the changes found since the last call, in no particular order.
  std::vector<GradualChange> take();
  /// Returns the first frame of the present run of one colour, if a fade led into the run.
  std::optional<std::int64_t> open_fade() const;
  /// Returns true if frames i and k show one scene: they differ less than half as much as i and
  /// `away`, or share colours that `away` lacks. Only the last 127 frames are in memory; returns
  /// false for other frames.
  bool same_scene(std::int64_t i, std::int64_t k, std::int64_t away) const;
  /// Returns true if three quarters of frame i equal the frame before, as when a title or an
  /// object's edge enters or leaves a plain ground.
  bool most_stays(std::int64_t i) const { return share_changed(i - 1, i) < 0.25f; }
  /// Returns true if both frames show the same plain colour, not black.
  bool same_ground(std::int64_t i, std::int64_t k) const;
  /// Returns true if edges (same_view.h) or colours show the same scene before and after a change.
  bool one_view(const GradualChange& change) const;
  /// Returns true if edges show that frames i and k show one view. Returns false if a frame is not
  /// in memory.
  bool one_view(std::int64_t i, std::int64_t k) const;

 private:
  static constexpr int kCells = 256 + 64 + 64;
  static constexpr float kPlain = 36.f * kCells;  // energy of a picture with little to see
  struct Relief {                                 // the content of an area; cells outside are zero
    alignas(32) std::array<float, kCells> cells;  // less the planes' means
    float energy = 0;                             // sum of squares
  };
  struct Tiny : Relief {  // within `area`
    ActiveArea area;
    float residual = 0;  // of MotionField
    MotionVector moved;  // mean of the blocks that move
    SmallPicture picture;
    CoarsePicture coarse;
    std::array<float, 3> mean{};  // of luma, u, v
    float variance = 0;           // of all cells around `mean`
    bool uniform = false;
  };
  struct PartsFit {
    float misfit = 0, step = 0, mixed = 0;
    float at_once = 0;  // 1: all parts have changed equally far, 0: each shows one of the pictures
  };
  struct Candidate {
    std::int64_t a = 0, b = 0;
    float quality = 0;
    GradualChange change;
    bool no_camera = false;  // not camera motion, even if one shift may explain it
    bool through = false;    // through one colour, from which the new picture opens
    bool closes = false;     // closes to black; a picture that opens from black may belong to it
  };
  static constexpr int kRing = 128;      // power of two above kGradualLag
  static constexpr int kAfter = 3;       // frames needed after a window to judge it
  static constexpr float kBest = 0.75f;  // quality of a transition, below that of a clean dissolve
  static constexpr float kBlack = 16;    // luma below which a frame of one colour is black

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
  std::int64_t best_end_ = 0;                         // Candidate::b of the last change found
  std::optional<std::int64_t> run_begin_, run_end_;   // the current or last run of one colour
  bool run_faded_in_ = false, run_cut_into_ = false;  // whether contrast fell before it, or not
  bool run_is_shot_ = false;                          // the fade into it has been reported
  std::int64_t run_resumes_ = -1;                     // GradualChange::resumes
  std::int64_t last_black_ = -1;                      // last black frame of the run
  std::int64_t ground_end_ = -1;                      // one past the last frame of the run before
  std::int64_t ground_begin_ = -1;                    // first frame of the run before
  std::vector<GradualChange> found_;
};

}  // namespace vfm::curate

// Gradual changes of shot: dissolves, wipes, and fades through black, white or any one colour.
//
// Dissolve: over a window [a, b] every picture P between is a mixture wa*A + wb*B of its ends, wa
// falling and wb rising about evenly, plus a constant (pictures are compared without their mean, so
// a dip to any colour changes only wa + wb). Two facts tell it from a moving camera: the mixture
// explains the picture, and the contrast dips in the middle by what mixing unrelated pictures costs
// (aa + bb - 2ab), which no motion does. The second holds however much moves inside the two shots.
//
// Fade: a run of frames of one colour that contrast leads into or out of over several frames, while
// the structure stays (a camera that turns to a wall loses contrast too, but not so); from and to
// black also light alone. A colour, not black, that stays for more than 32 frames is a shot.
//
// No step of a change stands out by much: a flash or an explosion begins by one. And a frame in the
// midst has not the colours and the contrast of both ends: that is one scene, which turns.
//
// Where too much moves for that, mean and variance of the pictures still tell: those of a mixture
// of unrelated pictures are known, whatever moves in them.
//
// A pan or zoom over something plain, as a sky, can look like either. But there one shift and zoom
// of the whole picture explains how each sixth of the window becomes the next.
// Wipe: wipe.h tells it from the frames between two that hold.
//
// Constant memory: a mebibyte for the last 128 frames. Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "curate/frame_features.h"
#include "curate/motion.h"
#include "curate/wipe.h"

namespace vfm::curate {

/// Frames between which a change happened: the old shot ends before `end`, the new one begins at
/// `begin`.
struct GradualChange {
  std::int64_t end = 0, begin = 0;
  std::int64_t middle = 0;  ///< first frame that shows more of the new shot than of the old
  bool fade = false;        ///< through one colour
  bool wipe = false;        ///< an edge crossed the picture
  bool uniform = false;     ///< around a run of frames of one colour
  bool abrupt = false;      ///< a cut at `end` leads into the run of one colour
  bool soft = false;        ///< over in two or three frames: a cut with blended frames
  /// Of a run of one colour that goes on one before it, as a white wall does after an explosion:
  /// one past that one's last frame; else -1.
  std::int64_t resumes = -1;
  float score = 0;  ///< 0 to 1: how well it fits
};

/// Frames after which a change is known, and a frame is not part of any later one.
inline constexpr int kGradualLag = 88;
/// Frames within which what an explosion or a title hid is seen again.
inline constexpr int kBlast = 32;

class GradualDetector {
 public:
  /// `strictness` scales how well a dissolve or wipe must fit: 1 normal, more finds fewer.
  explicit GradualDetector(double strictness = 1) : strictness_(static_cast<float>(strictness)) {}
  /// `motion`: from the frame before.
  void push(const FrameFeatures& features, const MotionField& motion);
  void finish();
  /// Changes found since the last call, in no particular order.
  std::vector<GradualChange> take();
  /// The first frame of the run of one colour that the video is in now, if a fade led into it.
  std::optional<std::int64_t> open_fade() const;
  /// Whether frames i and k show one scene, and differ less than half as much as i and `away` do,
  /// or have the same colours, which `away` has not; not if one of them is no more or not yet known
  /// (of the last 127, all are).
  bool same_scene(std::int64_t i, std::int64_t k, std::int64_t away) const;
  /// Whether three quarters of the picture are as in the frame before, where a title or the edge of
  /// something comes before a plain ground, or goes.
  bool most_stays(std::int64_t i) const { return share_changed(i - 1, i) < 0.25f; }
  /// Whether both show one ground of one colour, not black, and nothing else.
  bool same_ground(std::int64_t i, std::int64_t k) const;
  /// Whether the scene before a change is the one after it, by its edges (same_view.h) or
  /// its colours.
  bool one_view(const GradualChange& change) const;
  /// Whether frames i and k are of one view, by their edges; not if one of them is no more.
  bool one_view(std::int64_t i, std::int64_t k) const;

 private:
  static constexpr int kCells = 256 + 64 + 64;
  struct Relief {  // what is to be seen within an area; all else is zero, as the mean is
    alignas(32) std::array<float, kCells> cells;  // without the planes' means
    float energy = 0;                             // sum of squares
  };
  struct Tiny : Relief {  // within `area`
    ActiveArea area;
    float residual = 0;  // of MotionField
    SmallPicture picture;
    CoarsePicture coarse;
    std::array<float, 3> mean{};  // of luma, u, v
    float variance = 0;           // of all cells about it
    bool uniform = false;
  };
  struct Candidate {
    std::int64_t a = 0, b = 0;
    float quality = 0;
    GradualChange change;
  };
  static constexpr int kRing = 128;    // power of two above kGradualLag
  static constexpr float kBlack = 16;  // luma below which a frame of one colour is black

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
  void search_dissolves(std::int64_t now);
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
  std::optional<std::int64_t> run_begin_, run_end_;   // of the current or just ended uniform run
  bool run_faded_in_ = false, run_cut_into_ = false;  // contrast fell before it; or did not
  bool run_is_shot_ = false;                          // the fade into it has been told
  std::int64_t run_resumes_ = -1;                     // GradualChange::resumes
  std::int64_t last_black_ = -1;                      // of the frames of the run
  std::int64_t ground_end_ = -1;                      // one past the last frame of the run before
  std::vector<GradualChange> found_;
};

}  // namespace vfm::curate

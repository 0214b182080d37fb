// What GradualDetector finds, and by what.
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
// Transition: each part of the picture turns from what it shows before to what it shows after at a
// time of its own, and only once (parts_between.h); or a picture moves, and its lines say how far
// (moved_picture.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vfm::curate {

/// Frames between which a change happened: the old shot ends before `end`, the new one begins at
/// `begin`.
struct GradualChange {
  std::int64_t end = 0, begin = 0;
  std::int64_t middle = 0;  ///< first frame that shows more of the new shot than of the old
  bool fade = false;        ///< through one colour
  bool wipe = false;        ///< an edge crossed the picture
  bool transition = false;  ///< one picture took the other's place in some other way
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

}  // namespace vfm::curate

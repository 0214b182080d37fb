// The changes that GradualDetector finds, and how it recognises them.
//
// Dissolve: over a window [a, b] every picture P between is a mixture wa*A + wb*B of its ends, wa
// falling and wb rising about evenly, plus a constant (pictures are compared without their mean, so
// a dip to any colour changes only wa + wb). Two facts distinguish it from camera motion: the
// mixture explains the picture, and the contrast dips in the middle as in a mixture of unrelated
// pictures (aa + bb - 2ab), which no motion causes. The second holds whatever moves inside the
// shots.
//
// Fade: a run of frames of one colour, before or after which the contrast changes over several
// frames while the structure stays (when a camera turns to a wall, it does not). For black, a
// change of light alone is enough. A colour, not black, that stays for more than 32 frames is a
// shot.
//
// No step of a change stands out by much, as the first of a flash or explosion does. A middle frame
// must not have the colours and contrast of both ends: then the scene is the same, and the camera
// turns.
//
// If too much moves for that, mean and variance decide: those of a mixture of unrelated pictures
// are known, whatever moves.
//
// A pan or zoom over a plain ground, such as sky, can look like either. But then one shift and zoom
// of the whole picture explains each sixth of the window from the one before.
// Wipe: wipe.h recognises it by the frames between two still pictures.
// Transition: each part of the picture changes from the old to the new shot at its own time, and
// only once (parts_between.h); or a picture moves, and its lines tell how far (moved_picture.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vfm::curate {

/// Frames between which a change happened: the old shot ends before `end`, the new one begins at
/// `begin`.
struct GradualChange {
  std::int64_t end = 0, begin = 0;
  std::int64_t middle = 0;  ///< first frame with more of the new shot than of the old
  bool fade = false;        ///< through one colour
  bool wipe = false;        ///< an edge crossed the picture
  bool transition = false;  ///< one picture took the other's place in some other way
  bool uniform = false;     ///< around a run of frames of one colour
  bool abrupt = false;      ///< a cut at `end` leads into the run of one colour
  bool soft = false;        ///< over in two or three frames: a cut with blended frames
  /// If a run of one colour continues an earlier run, as a white wall after an explosion: one past
  /// the earlier run's last frame; else -1.
  std::int64_t resumes = -1;
  float score = 0;  ///< 0 to 1: how well it fits
};

/// Frames after which a change is known, and a frame belongs to no later change.
inline constexpr int kGradualLag = 88;
/// Frames within which a scene hidden by an explosion or a title returns.
inline constexpr int kBlast = 32;

}  // namespace vfm::curate

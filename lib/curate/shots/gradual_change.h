// The changes that GradualDetector finds, and how it recognises them.
//
// Dissolve: every picture P in a window [a, b] is a mixture wa*A + wb*B of the window's first and
// last picture, plus a constant. wa falls and wb rises about evenly. (Pictures are compared without
// their mean.) Two facts distinguish a dissolve from camera motion: the mixture explains P, and
// contrast dips in the middle, as in a mixture of unrelated pictures (aa + bb - 2ab). No motion
// inside the shots causes this dip.
//
// Fade: before or after a run of frames of one colour, contrast changes over several frames while
// structure stays. For a black run, a change of light is enough. A run of more than 32 frames of a
// colour other than black is a shot.
//
// Further tests: one step of a change must not be much larger than its other steps, as the first
// step of a flash or explosion is. If a middle frame has the colours and contrast of both ends, a
// camera turns within one scene. If too much moves for a dissolve's test, mean and variance decide.
// A pan or zoom over a plain ground, such as sky, is recognised if one shift and zoom of the whole
// picture explains each sixth of the window from the sixth before.
//
// Wipe: wipe.h recognises it by the frames between two still pictures.
// Transition: each part of the picture changes once from the old to the new shot, at its own time
// (parts_between.h). Or a picture moves, and its rows or columns show how far (moved_picture.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vfm::curate {

/// A change: the old shot ends before frame `end`, the new shot begins at frame `begin`.
struct GradualChange {
  std::int64_t end = 0, begin = 0;
  std::int64_t middle = 0;  ///< first frame with more of the new shot than of the old
  bool fade = false;        ///< through one colour
  bool wipe = false;        ///< an edge crossed the picture
  bool transition = false;  ///< neither dissolve, fade nor wipe
  bool uniform = false;     ///< contains a run of frames of one colour
  bool abrupt = false;      ///< a cut at `end` leads into the run of one colour
  bool soft = false;        ///< lasts two or three frames: a cut with blended frames
  /// One past the last frame of an earlier run of one colour that this run continues, like a white
  /// wall after an explosion; -1 if there is none.
  std::int64_t resumes = -1;
  float score = 0;  ///< 0 to 1: how well the change fits its kind
};

/// The delay in frames after which a change is known. Frames of this age are not part of changes
/// found later.
inline constexpr int kGradualLag = 88;
/// A scene hidden by an explosion or a title returns within this many frames.
inline constexpr int kBlast = 32;

}  // namespace vfm::curate

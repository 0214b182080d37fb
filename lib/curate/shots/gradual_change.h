// Describes the gradual changes that GradualDetector finds, and how it recognises them.
//
// Dissolve: Each picture P in a window [a, b] is a mixture wa*A + wb*B of the first and last
// picture, plus a constant. The weight wa falls and wb rises about evenly. Contrast is lower in the
// middle of a dissolve, as in any mixture of unrelated pictures. Camera motion does not lower
// contrast.
//
// Fade: Before or after a run of frames of one colour, contrast changes over several frames while
// the structure stays the same. For a black run, a change of light is enough. A run of more than 32
// frames of a colour other than black is a shot.
//
// Several tests exclude other events. In a flash or explosion, the first step is much larger than
// the other steps. If a camera turns within a scene, a middle frame has the colours and contrast of
// both ends. In a pan or zoom over a plain ground, such as sky, one shift and zoom of the whole
// picture explains the change. If too much moves for the test of dissolves, mean and variance are
// tested.
//
// Wipe: An edge crosses the picture (wipe.h).
// Transition: Each part of the picture changes once from the old to the new shot, at its own time
// (parts_between.h), or a whole picture moves (moved_picture.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vfm::curate {

/// A gradual change. The old shot ends before frame `end`, and the new shot begins at frame
/// `begin`.
struct GradualChange {
  std::int64_t end = 0, begin = 0;
  std::int64_t middle = 0;  ///< first frame that shows more of the new shot than of the old
  bool fade = false;        ///< whether the change passes through one colour
  bool wipe = false;        ///< whether an edge crosses the picture
  bool transition = false;  ///< whether the change is not a dissolve, fade or wipe
  bool uniform = false;     ///< whether the change contains a run of frames of one colour
  bool abrupt = false;      ///< whether a cut at `end` leads into the run of one colour
  bool soft = false;        ///< whether the change is a cut with two or three blended frames
  /// One past the last frame of an earlier run of one colour that the run of this change continues,
  /// or -1 if there is no earlier run. A white wall before and after an explosion is an example.
  std::int64_t resumes = -1;
  float score = 0;  ///< how well the change fits its kind, 0 to 1
};

/// The delay in frames after which a change is known. Frames of this age are not part of changes
/// that are found later.
inline constexpr int kGradualLag = 88;
/// The largest number of frames for which an explosion or a title hides a scene.
inline constexpr int kBlast = 32;

}  // namespace vfm::curate

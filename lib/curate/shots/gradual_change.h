// Describes the gradual changes that GradualDetector finds, and how it recognises them.
//
// Dissolve: Each picture is a mixture of the first and last picture of a window, plus a constant.
// Contrast is lower in the middle of the window. Camera motion does not lower contrast.
//
// Fade: Before or after a run of frames of one colour, contrast changes over several frames. Before
// or after a run of black frames, a change of brightness is enough. A run of another colour is a
// shot of its own if it has more than 32 frames.
//
// Wipe: An edge crosses the picture (wipe.h).
// Transition: Each part of the picture changes once from the old to the new shot, at its own time
// (parts_between.h), or a whole picture moves (moved_picture.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vfm::curate {

/// The old shot ends before frame `end`, and the new shot begins at frame `begin`.
struct GradualChange {
  std::int64_t end = 0, begin = 0;
  std::int64_t middle = 0;  ///< First frame that shows more of the new shot than of the old shot.
  bool fade = false;        ///< If true, the change passes through one colour.
  bool wipe = false;        ///< If true, an edge crosses the picture.
  bool transition = false;  ///< If true, the change is not a dissolve, fade or wipe.
  bool uniform = false;     ///< If true, the change contains a run of frames of one colour.
  bool abrupt = false;      ///< If true, a cut at `end` leads into the run of one colour.
  bool soft = false;        ///< If true, the change is a cut with two or three blended frames.
  /// The frame after an earlier run of one colour that this change's run continues, or -1.
  std::int64_t resumes = -1;
  float score = 0;  ///< How well the change fits its kind, 0 to 1.
};

/// The delay in frames after which a change is known. Once frame n is added, changes that are found
/// later lie after frame n - kGradualLag.
inline constexpr int kGradualLag = 88;
/// The largest number of frames for which an explosion or a title hides a scene.
inline constexpr int kBlast = 32;

}  // namespace vfm::curate

// Makes the captions of `builtin:measure`, which contain only measurements.
//
// A caption is one English sentence and names no objects.
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "curate/glimpse.h"

namespace vfm::curate {

/// The measurements of a glimpse.
struct Measured {
  double light = 0;         ///< Mean luma, 0 to 1.
  bool colourless = false;  ///< If true, the glimpse is black and white.
  /// Mean absolute difference of luma between pictures an eighth of a second apart.
  double motion = 0;
  struct Colour {
    std::string name;  ///< Basic colour term, such as "red".
    double share = 0;  ///< Share of all pixels.
  };
  std::vector<Colour> colours;  ///< Colours, sorted by falling share, then by name.
};
Measured measure(const Glimpse& glimpse);

/// Returns a sentence such as "A dark 2.1-second video, mostly grey with some red, with little
/// motion; the camera is still." Duration, kind and number of shots come from `facts`, the clip's
/// KEY.json (fields "media", "seconds", "width", "height", "shots"). All other parts come from the
/// glimpse. Unknown and unclear parts are left out. The shortest result is "A video.".
std::string describe(const Json& facts, const Glimpse& glimpse);

/// Returns the basic colour term (Berlin and Kay) for a pixel.
const char* colour_name(int red, int green, int blue);

}  // namespace vfm::curate

// `builtin:measure`: a caption made only of measurements.
//
// The caption is one English sentence with length, light, colours, motion, camera motion and number
// of shots. It names no objects. Pure; thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "curate/glimpse.h"

namespace vfm::curate {

/// The measurements of a glimpse that describe() puts into words.
struct Measured {
  double light = 0;         ///< mean luma, 0 to 1
  bool colourless = false;  ///< black and white
  double motion = 0;        ///< mean |difference| of luma an eighth of a second apart
  struct Colour {
    std::string name;  ///< a basic colour term: "red", "grey"
    double share = 0;  ///< of all pixels
  };
  std::vector<Colour> colours;  ///< largest share first; equal shares by name
};
Measured measure(const Glimpse& glimpse);

/// Returns a sentence such as "A dark 2.1-second video, mostly grey with some red, with little
/// motion; the camera is still." Length, kind and number of shots come from `facts` (KEY.json:
/// media, seconds, width, height, shots), all other parts from the glimpse. Unknown or unclear
/// parts are left out; the shortest result is "A video.".
std::string describe(const Json& facts, const Glimpse& glimpse);

/// Returns the basic colour term (Berlin and Kay) of a pixel, by hue, saturation and value.
const char* colour_name(int red, int green, int blue);

}  // namespace vfm::curate

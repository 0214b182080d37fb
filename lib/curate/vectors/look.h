// Computes `builtin:look`, a vector that describes the look of a clip, without a trained model.
//
// The vector has length 1. Five groups of values are scaled to about length 1, weighted and joined:
//   ground  the mean colour (4 values)
//   layout  low DCT coefficients of the mean picture, as in the MPEG-7 colour layout descriptor,
//           ISO/IEC 15938-3 (24 values)
//   change  the first two cosines of the layout over time (54 values)
//   edges   eight directions of edges in 4 x 4 cells, as in the MPEG-7 edge histogram and HOG,
//           Dalal and Triggs 2005 (128 values)
//   motion  the amount of motion in 4 x 4 cells, and in eight directions (24 values)
// The cosine is above 0.98 for copies of a clip with another codec, size or frame rate, and mostly
// below 0.6 for unrelated clips. The vector describes light and colour, not objects.
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/json_fwd.h"
#include "curate/glimpse.h"

namespace vfm::curate {

inline constexpr int kLookDim = 4 + 24 + 54 + 128 + 24;

/// Returns the vector of a glimpse. If the glimpse has no pictures, returns zeros.
std::vector<float> look(const Glimpse& glimpse);

/// Returns {"name":"builtin:look","dim":234,"version":1}.
Json look_config();

/// Returns the dot product of two vectors. For vectors of length 1, it is their cosine.
double dot(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace vfm::curate

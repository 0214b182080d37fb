// `builtin:look`: the look of a clip as one vector, without a trained model.
//
// The vector has five groups of measures, each scaled to about unit length, then weighted and
// joined:
//   ground  the mean colour                                                     (4 values)
//   layout  which colours are where: low DCT coefficients of the mean picture   (24; as the MPEG-7
//           colour layout descriptor, ISO/IEC 15938-3)
//   change  how the layout moves through time: its first two cosines over time  (54)
//   edges   directions of edges in 4x4 cells, eight directions                  (128; as the MPEG-7
//           edge histogram and HOG, Dalal and Triggs 2005)
//   motion  how much moves in 4x4 cells, and in which of eight directions       (24)
// The vector has length 1. Copies of a clip (with another codec, size or rate) have a cosine above
// 0.98, unrelated clips mostly below 0.6. The vector describes light and colour, not objects. Pure;
// thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/json_fwd.h"
#include "curate/glimpse.h"

namespace vfm::curate {

inline constexpr int kLookDim = 4 + 24 + 54 + 128 + 24;

/// Returns the look of a glimpse. If the glimpse has no pictures, returns zeros, which resemble no
/// other vector.
std::vector<float> look(const Glimpse& glimpse);

/// Returns {"name":"builtin:look","dim":234,"version":1}.
Json look_config();

/// Returns the sum of products, which is the cosine of vectors of length 1.
double dot(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace vfm::curate

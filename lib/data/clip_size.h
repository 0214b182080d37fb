// The sizes that a clip's pixels get: which frames are taken of it, and the shape of the picture.
//
// One rule for those who decode a clip and for those who plan by what an index says of it, without
// decoding: vfm-pack and training on clips make equal sizes. Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/rational.h"

namespace vfm::data {

/// Width and height of the bucket for a picture: multiples of `multiple`, area about size^2, shape
/// about that of the picture.
struct Bucket {
  int width = 0, height = 0;
};
Bucket bucket_of(int width, int height, int size, int multiple);

/// Indices of the frames to take: by time, exactly, at the rate `fps`. `pts` are all frames'
/// timestamps in units of `base`, rising, `end` that of the end of the last frame. The k-th is the
/// one that shows k / fps after the first. Empty if the clip is slower than `fps`: frames are never
/// repeated to fill up a rate.
std::vector<std::int64_t> sample_times(const std::vector<std::int64_t>& pts, std::int64_t end,
                                       Rational base, Rational fps);

/// The largest 1 + k * step that is at most `available` and at most `most`; 0 if that is nothing.
int whole_groups(std::int64_t available, int most, int step);

/// What an index says of a clip. 0: it does not.
struct ClipFacts {
  std::int64_t frames = 0;    ///< 1 of a picture
  int width = 0, height = 0;  ///< as it is shown, pixels
  double seconds = 0, fps = 0;
};

/// How many frames sample_times() finds in a clip of so many, that lasts so long; all, if the clip
/// is slower than `fps`, or that is 0. Of a clip that ends less than a thousandth of a frame after
/// one of these times that one counts as not there, as rounded timestamps have it.
std::int64_t frames_at(const ClipFacts& clip, Rational fps);

}  // namespace vfm::data

// Finds the parts of two videos that show the same content, with times, crop and score. Pairs of
// videos and approximate places come from clip/unique/duplicate_index.h.
//
// The offset in time and the crop of the second video are searched near the approximate place. At
// each moment, the changes (curate/copies/change_codes.h) and the pictures of both videos are
// correlated.
// Pure functions. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "curate/copies/change_codes.h"
#include "curate/copies/video_signature.h"

namespace vfm::curate {

/// The approximate place of a match. Moment k of the second video equals moment k + `offset` of the
/// first video. `crop` has the edges of the second video within the first video. The search changes
/// the offset by up to half a second, and each edge of `crop` by up to 0.15.
struct AlignmentStart {
  double offset = 0;
  CropWindow crop;
  std::size_t from = 0, to = 0;  ///< Moments of the second video that seem to match.
};

/// The conditions for a match. Times are in pictures, with kSignatureRate pictures per second.
struct MatchRules {
  std::size_t least_pictures = 18;  ///< Minimum length of a match.
  /// The minimum correlation of changes around each moment of a match, 0 to 1.
  double least_change = 0.4;
  /// The minimum of the mean correlation of pictures, 0 to 1.
  double least_picture = 0.6;
  /// The minimum sum of evidence. Each moment adds the certainty, 0 to 1, that something changes.
  double least_evidence = 4;
  /// The change_detail() below which changes easily agree by chance.
  double least_detail = 0.06;
  /// Returns the minimum of the mean correlation of changes. The minimum is lower for a longer
  /// match. The minimum is higher for a match with little change, or with less detail than
  /// `least_detail`.
  double least_score(std::size_t pictures, double evidence, double detail) const {
    const double time = std::min(static_cast<double>(pictures), 2.5 * evidence);
    return detail < least_detail ? std::min(0.95, 0.5 + 19.8 / time)
                                 : std::min(0.9, 0.5 + 6.6 / time);
  }
};

/// A part in which both videos show the same content.
struct VideoMatch {
  /// A picture's number in the first video, minus the number of the same picture in the second
  /// video.
  double offset = 0;
  CropWindow crop;                 ///< Edges of the second video within the first video.
  /// First picture of the match in the second video, and one past the last.
  std::size_t begin = 0, end = 0;
  double score = 0;                ///< Mean correlation of changes.
  double evidence = 0;             ///< Sum of evidence (MatchRules::least_evidence).
};

/// Returns the matches around `start` in order, or an empty list if there is no match.
std::vector<VideoMatch> align_videos(std::span<const SignaturePicture> first,
                                     std::span<const SignaturePicture> second,
                                     const AlignmentStart& start, const MatchRules& rules);

}  // namespace vfm::curate

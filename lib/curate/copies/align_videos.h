// Finds stretches in which two videos show the same content, with times, crop and score.
// clip/unique/duplicate_index.h finds the pairs of videos and the approximate places.
//
// The second video is laid over the first with an offset in time and a crop, both searched near the
// approximate place. At each moment two correlations over the cells are computed. One compares the
// changes (curate/copies/change_codes.h), if anything changes. The other compares the pictures
// without the tenth of the cells that differs most, such as a logo. A strong change has more weight
// than a weak change. A weak change all over the picture is noise. Pure. Thread-safety: none
// needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "curate/copies/change_codes.h"
#include "curate/copies/video_signature.h"

namespace vfm::curate {

/// The place where the search begins. Moment k of the second video is moment k + offset of the
/// first, and the second video's edges lie at `crop` of the first. The search refines the offset by
/// up to half a second, and edges by 0.15.
struct AlignmentStart {
  double offset = 0;
  CropWindow crop;
  std::size_t from = 0, to = 0;  ///< moments of the second video that seem to match
};

/// The conditions of a match. Times are in pictures, kSignatureRate a second.
struct MatchRules {
  std::size_t least_pictures = 18;  ///< least length: 5 s, less losses at the ends
  /// The least correlation of changes around each moment, 0 to 1.
  double least_change = 0.4;
  /// The least mean correlation of pictures, 0 to 1.
  double least_picture = 0.6;
  /// The least sum of evidence. Each moment adds 0 to 1, the certainty that something changes.
  double least_evidence = 4;
  /// Below this change_detail(), whole slopes rise and fall, and such changes easily agree by
  /// chance.
  double least_detail = 0.06;
  /// The least mean correlation of changes. This correlation falls with the match's length. Moments
  /// without change add at most 1.5 times `evidence` to the length; without detail, a third of the
  /// length is used.
  double least_score(std::size_t pictures, double evidence, double detail) const {
    const double time = std::min(static_cast<double>(pictures), 2.5 * evidence);
    return detail < least_detail ? std::min(0.95, 0.5 + 19.8 / time)
                                 : std::min(0.9, 0.5 + 6.6 / time);
  }
};

/// A stretch in which both videos show the same content.
struct VideoMatch {
  double offset = 0;               ///< picture number in the first video less number in the second
  CropWindow crop;                 ///< where the second video lies in the first
  std::size_t begin = 0, end = 0;  ///< pictures of the second video
  double score = 0;                ///< mean correlation of changes
  double evidence = 0;             ///< see MatchRules
};

/// Returns the stretches around `start`, in order, or an empty list if the videos differ around
/// `start`.
std::vector<VideoMatch> align_videos(std::span<const SignaturePicture> first,
                                     std::span<const SignaturePicture> second,
                                     const AlignmentStart& start, const MatchRules& rules);

}  // namespace vfm::curate

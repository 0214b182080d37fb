// Finds stretches in which two videos show the same: their times, crop and certainty.
//
// One is laid over the other by an offset in time and a mapping of its edges, both searched near a
// supposed place. Then changes (curate/copies/change_codes.h) are compared, moment by moment: their
// correlation over the cells, where anything changes, and that of the pictures themselves, without
// the tenth of the cells that differs most (a logo). Pictures alone prove nothing: those of a fixed
// camera are the same at any time. A change counts the more the stronger it is; a weak one counts
// if it is in few cells, as what moves is, and not all over the picture, as noise is.
// clip/unique/duplicate_index.h finds pairs and places.
// Pure. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "curate/copies/change_codes.h"
#include "curate/copies/video_signature.h"

namespace vfm::curate {

/// Where to look: moment k of the second video is k + offset of the first one, and its edges are at
/// `crop` of the first one's. Both are refined: the offset by half a second, edges by 0.15.
struct AlignmentStart {
  double offset = 0;
  CropWindow crop;
  std::size_t from = 0, to = 0;  ///< moments of the second one near which the two seem the same
};

/// The conditions of a match. Times are in pictures, kSignatureRate a second.
struct MatchRules {
  std::size_t least_pictures = 18;  ///< its length: 5 s, less the loss at the ends
  /// Correlation of changes around each of its moments, 0 to 1.
  double least_change = 0.4;
  /// Mean correlation of pictures, 0 to 1.
  double least_picture = 0.6;
  /// Sum over its moments of how sure it is that anything changes in them, 0 to 1 each.
  double least_evidence = 4;
  /// Below this change_detail() slopes go up and down, which is easily the same by chance.
  double least_detail = 0.06;
  /// The least mean correlation of changes. It falls with the length, since videos agree by chance
  /// only briefly. Still stretches count up to 1.5 times the moving ones; without detail time
  /// counts a third.
  double least_score(std::size_t pictures, double evidence, double detail) const {
    const double time = std::min(static_cast<double>(pictures), 2.5 * evidence);
    return detail < least_detail ? std::min(0.95, 0.5 + 19.8 / time)
                                 : std::min(0.9, 0.5 + 6.6 / time);
  }
};

/// A stretch in which both show the same.
struct VideoMatch {
  double offset = 0;               ///< of the first one's pictures to the second one's
  CropWindow crop;                 ///< where the second one lies in the first one
  std::size_t begin = 0, end = 0;  ///< pictures of the second one
  double score = 0;                ///< mean correlation of changes
  double evidence = 0;             ///< see MatchRules
};

/// The stretches of a place, one after the other; none if the two do not show the same there.
std::vector<VideoMatch> align_videos(std::span<const SignaturePicture> first,
                                     std::span<const SignaturePicture> second,
                                     const AlignmentStart& start, const MatchRules& rules);

}  // namespace vfm::curate

// Chooses which of several sources with the same content stays.
//
// A source is left out if another source that stays has the same bytes, or shows at least a given
// share of it. The longer source stays; among equally long ones that with the larger picture, then
// with more bytes, then with the first name, byte by byte. In a group, sorted by length, sources
// are equally long if they are shorter than the longest of their run by at most 1 % or half a
// second: copies lose a frame at their ends. A source that is left out does not exclude others.
// Sources that only share a part stay.
// Pure. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "curate/copies/align_videos.h"

namespace vfm::clip {

/// The facts for the choice.
struct ComparedSource {
  std::string path, hash;
  double seconds = 0;
  std::int64_t pixels = 0;
  std::uint64_t bytes = 0;
};

/// A stretch in which two sources with different bytes show the same. Among sources with the same
/// bytes it names the first.
struct CommonStretch {
  std::size_t first = 0, second = 0;  ///< places in the list of sources; first < second
  double first_begin = 0, first_end = 0, second_begin = 0, second_end = 0;  ///< seconds
  double score = 0;
  curate::CropWindow crop;  ///< where the second lies in the first
};

/// The stretch as seen from the other one: `a` and `b` exchanged.
CommonStretch exchanged(const CommonStretch& stretch);
/// Sorts by source and time. Among stretches that overlap by half at one offset it keeps the one
/// with the highest score.
std::vector<CommonStretch> without_repeats(std::vector<CommonStretch> stretches);

struct SourceChoice {
  std::optional<std::size_t> group;   ///< from 0 on, by the first source of each; none: alone
  std::optional<std::size_t> keeper;  ///< the source that stays instead; none: this one stays
  bool exact = false;                 ///< it has the same bytes
  double covered = 0;                 ///< else: the share of this one that the keeper shows
};
/// One for each source. `share`: above 0, up to 1.
std::vector<SourceChoice> choose_sources(const std::vector<ComparedSource>& sources,
                                         const std::vector<CommonStretch>& stretches, double share);

}  // namespace vfm::clip

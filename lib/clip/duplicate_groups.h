// Of sources that show the same, which one stays.
//
// A source is left out if another one that stays has the same bytes, or shows at least a given
// share of it. The better stays: the longer one; of those that are equally long the one with the
// larger picture, then that with more bytes, then the name that is first, byte by byte. Equally
// long are those of one group that are shorter than its longest, or the first of the next such run,
// by at most 1 % or half a second: copies lose a frame at their ends.
// Whoever is left out leaves nobody out. What only has a part in common with others stays.
// Pure. Thread-safety: none needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "curate/align_videos.h"

namespace vfm::clip {

/// What the choice goes by.
struct ComparedSource {
  std::string path, hash;
  double seconds = 0;
  std::int64_t pixels = 0;
  std::uint64_t bytes = 0;
};

/// A stretch in which two sources, which do not have the same bytes, show the same. Of several with
/// the same bytes it names the first.
struct CommonStretch {
  std::size_t first = 0, second = 0;  ///< places in the list of sources; first < second
  double first_begin = 0, first_end = 0, second_begin = 0, second_end = 0;  ///< seconds
  double score = 0;
  curate::CropWindow crop;  ///< where the second lies in the first
};

/// The stretch as seen from the other one: `a` and `b` exchanged.
CommonStretch exchanged(const CommonStretch& stretch);
/// In order of sources and time, and of those that say the same, as they overlap by half at one
/// offset, the one with the highest score.
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

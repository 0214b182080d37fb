// Chooses which of several sources with the same content stay.
//
// A source is left out if a source that stays has the same bytes, or shows at least a given share
// of it. The longer source stays. Of equally long sources the source with the larger picture stays,
// then with more bytes, then with the first name (byte by byte). Sources are treated as equally
// long if they are shorter than the longest source by at most 1 % or half a second. A source that
// is left out does not exclude others. Sources that have only a part in common stay. Pure.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "curate/copies/align_videos.h"

namespace vfm::clip {

/// The facts that decide the choice.
struct ComparedSource {
  std::string path, hash;
  double seconds = 0;
  std::int64_t pixels = 0;
  std::uint64_t bytes = 0;
};

/// A stretch in which two sources with different bytes show the same content. Of sources with the
/// same bytes only the first has stretches.
struct CommonStretch {
  std::size_t first = 0, second = 0;  ///< indices of sources; first < second
  double first_begin = 0, first_end = 0, second_begin = 0, second_end = 0;  ///< seconds
  double score = 0;
  curate::CropWindow crop;  ///< the second's place in the first's picture
};

/// Returns the same stretch with first and second source exchanged.
CommonStretch exchanged(const CommonStretch& stretch);
/// Sorts by source and time. Of stretches that overlap by half at the same offset, keeps the one
/// with the highest score.
std::vector<CommonStretch> without_repeats(std::vector<CommonStretch> stretches);

struct SourceChoice {
  std::optional<std::size_t> group;   ///< from 0, ordered by first source; none: in no group
  std::optional<std::size_t> keeper;  ///< the source that stays instead; none: this source stays
  bool exact = false;                 ///< the keeper has the same bytes
  double covered = 0;  ///< if not exact: the share of this source that the keeper shows
};
/// Returns a choice for each source. `share`: above 0, up to 1.
std::vector<SourceChoice> choose_sources(const std::vector<ComparedSource>& sources,
                                         const std::vector<CommonStretch>& stretches, double share);

}  // namespace vfm::clip

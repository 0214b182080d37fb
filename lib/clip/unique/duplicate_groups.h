// Chooses which of several sources with the same content are kept.
//
// A source is left out if a kept source has the same bytes, or shows at least a given share of the
// left-out source. Of two sources with the same content, the longer source is kept. Of equally long
// sources, the source with the larger picture is kept. If the pictures are equally large, the
// source with more bytes is kept. If the numbers of bytes are equal too, the source whose path is
// first in byte order is kept. Sources count as equally long if each is at most 1 % or half a
// second (whichever is more) shorter than the longest of these sources. Only kept sources exclude
// other sources. Thread-safety: pure functions, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "curate/copies/align_videos.h"

namespace vfm::clip {

struct ComparedSource {
  std::string path, hash;
  double seconds = 0;
  std::int64_t pixels = 0;
  std::uint64_t bytes = 0;
};

/// A stretch of time in which two sources with different bytes show the same content. If several
/// sources have the same bytes, only the first source has stretches.
struct CommonStretch {
  std::size_t first = 0, second = 0;  ///< Indices of the sources, with `first` below `second`.
  double first_begin = 0, first_end = 0, second_begin = 0, second_end = 0;  ///< Times in seconds.
  double score = 0;
  curate::CropWindow crop;  ///< Place of the second picture within the first.
};

/// Returns the stretch with the first and second source exchanged.
CommonStretch exchanged(const CommonStretch& stretch);
/// Sorts the stretches by source and time. If stretches overlap by half at the same offset, keeps
/// the stretch with the highest score.
std::vector<CommonStretch> without_repeats(std::vector<CommonStretch> stretches);

struct SourceChoice {
  /// Number of the group of sources with common content, or nullopt if no other source has common
  /// content. Groups are numbered in the order of their first sources.
  std::optional<std::size_t> group;
  /// Index of the source that replaces this source, or nullopt if this source is kept.
  std::optional<std::size_t> keeper;
  bool exact = false;  ///< If true, this source and the keeper have the same bytes.
  double covered = 0;  ///< Share of this source that the keeper shows, if the bytes differ.
};
/// Returns a choice for each source. `share` (above 0, at most 1) is the part of a left-out source
/// that a kept source must show.
std::vector<SourceChoice> choose_sources(const std::vector<ComparedSource>& sources,
                                         const std::vector<CommonStretch>& stretches, double share);

}  // namespace vfm::clip

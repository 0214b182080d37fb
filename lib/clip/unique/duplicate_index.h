// Finds places in different sources that may show the same content. The index maps codes of changes
// between pictures (curate/copies/change_codes.h) to places.
//
// A place is found only if several moments of both sources have equal codes, with the same offset
// in time and the same crop. The places must still be compared (curate/copies/align_videos.h).
//
// Memory: 12 bytes for each moment with a change (at most 48 bytes for each second of video), and
// at most 127 MiB for each running search. Thread-safety: find() from any thread, once finish() is
// done.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "curate/copies/align_videos.h"
#include "curate/copies/video_signature.h"

namespace vfm::clip {

/// A code that marks a moment of `source`.
struct IndexedMoment {
  std::uint32_t code = 0, source = 0, moment = 0;
  friend auto operator<=>(const IndexedMoment&, const IndexedMoment&) = default;
};
std::vector<IndexedMoment> indexed_moments(std::uint32_t source,
                                           std::span<const curate::SignaturePicture> pictures);

/// A place in `source` that may have the same content as the searched video.
struct LikelyPlace {
  std::uint32_t source = 0;
  curate::AlignmentStart start;  ///< Alignment with `source` as the first video.
  std::size_t votes = 0;         ///< Number of moments that have equal codes in both videos.
};

class DuplicateIndex {
 public:
  /// Adds moments in any order, before finish().
  void add(const std::vector<IndexedMoment>& moments);
  void finish();
  /// Returns the places in other sources that may have the same content as `pictures`, which belong
  /// to `source`. The places are sorted by source and offset, without duplicates. If more than
  /// kMostOfCode moments share a code, only moments of the first sources are used. Throws Stopped.
  std::vector<LikelyPlace> find(std::uint32_t source,
                                std::span<const curate::SignaturePicture> pictures) const;

  static constexpr std::size_t kMostOfCode = 100;

 private:
  struct Hit;
  std::span<const IndexedMoment> of_code(std::uint32_t code) const;
  void look_up(std::uint32_t source, const curate::LookupCodes& codes, std::uint32_t moment,
               std::vector<Hit>& hits) const;

  std::vector<IndexedMoment> moments_;   // sorted
  std::vector<std::uint64_t> first_of_;  // index in moments_, by the first bits of a code
};

}  // namespace vfm::clip

// Finds places in different sources that may show the same content. An inverted index maps codes,
// each of a change between pictures (curate/copies/change_codes.h), to places.
//
// Sources share many codes by chance, so several moments must share codes at one offset in time and
// for one crop. Results are places to compare (curate/copies/align_videos.h), not duplicates.
//
// Memory: 12 bytes for each moment with a change, at most 48 bytes for each second of video. Each
// running search takes 16 bytes for each shared code in 16 seconds, at most 127 MiB.
// Thread-safety: find() from any thread, once finish() is done.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "curate/copies/align_videos.h"
#include "curate/copies/video_signature.h"

namespace vfm::clip {

/// A code by which other sources find a moment of `source`.
struct IndexedMoment {
  std::uint32_t code = 0, source = 0, moment = 0;
  friend auto operator<=>(const IndexedMoment&, const IndexedMoment&) = default;
};
std::vector<IndexedMoment> indexed_moments(std::uint32_t source,
                                           std::span<const curate::SignaturePicture> pictures);

/// A place in `source` that may have the same content as the searched source.
struct LikelyPlace {
  std::uint32_t source = 0;
  curate::AlignmentStart start;  ///< with `source` as first of the two
  std::size_t votes = 0;         ///< number of moments that agree
};

class DuplicateIndex {
 public:
  /// Adds moments in any order, before finish().
  void add(const std::vector<IndexedMoment>& moments);
  void finish();
  /// Returns places in other sources that may have the same content as `pictures` of `source`,
  /// sorted by source and offset, without duplicates. If more than kMostOfCode moments share a
  /// code, only moments of the first sources are used. Throws Stopped.
  std::vector<LikelyPlace> find(std::uint32_t source,
                                std::span<const curate::SignaturePicture> pictures) const;

  static constexpr std::size_t kMostOfCode = 100;

 private:
  struct Hit;
  std::span<const IndexedMoment> of_code(std::uint32_t code) const;
  void look_up(std::uint32_t source, const curate::LookupCodes& codes, std::uint32_t moment,
               std::vector<Hit>& hits) const;

  std::vector<IndexedMoment> moments_;   // sorted
  std::vector<std::uint64_t> first_of_;  // by the first bits of a code
};

}  // namespace vfm::clip

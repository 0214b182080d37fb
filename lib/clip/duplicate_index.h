// Which sources may show the same as another one, and where: an inverted index of the codes of
// their changes (curate/change_codes.h).
//
// Codes that two have in common by chance are many, so what counts is that several moments have
// them at one offset in time and for one way of cropping. What is found are places to look at
// (curate/align_videos.h), not duplicates.
//
// Memory: 12 bytes for each moment in which something changes, at most 48 for each second of video;
// beside that, for each search at a time, 16 bytes for each code in common of 16 seconds: at most
// 127 MiB, were each code in common with kMostOfCode others.
// Thread-safety: find() from any thread, once finish() is done.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "curate/align_videos.h"
#include "curate/video_signature.h"

namespace vfm::clip {

/// The codes of one source by which others find it.
struct IndexedMoment {
  std::uint32_t code = 0, source = 0, moment = 0;
  friend auto operator<=>(const IndexedMoment&, const IndexedMoment&) = default;
};
std::vector<IndexedMoment> indexed_moments(std::uint32_t source,
                                           std::span<const curate::SignaturePicture> pictures);

/// A place where a source may show what another one shows.
struct LikelyPlace {
  std::uint32_t source = 0;
  curate::AlignmentStart start;  ///< `source` is the first of the two
  std::size_t votes = 0;         ///< moments that say so
};

class DuplicateIndex {
 public:
  /// In any order; before finish().
  void add(const std::vector<IndexedMoment>& moments);
  void finish();
  /// Places of other sources in which these pictures, of `source`, may be: by source and offset,
  /// each once. Of a code that more than kMostOfCode moments share those of the first sources
  /// count. Throws Stopped.
  std::vector<LikelyPlace> find(std::uint32_t source,
                                std::span<const curate::SignaturePicture> pictures) const;

  static constexpr std::size_t kMostOfCode = 100;

 private:
  struct Hit;
  std::span<const IndexedMoment> of_code(std::uint32_t code) const;
  void look_up(std::uint32_t source, const curate::LookupCodes& codes, std::uint32_t moment,
               std::vector<Hit>& hits) const;

  std::vector<IndexedMoment> moments_;   // sorted
  std::vector<std::uint64_t> first_of_;  // of each beginning of a code
};

}  // namespace vfm::clip

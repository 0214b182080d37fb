// Who reads what of samples that several ranks share: each about as many bytes as any other.
//
// Samples lie one after the other, by the bytes they are about, and are cut in as many parts as
// there are ranks. A cut that is near a boundary between samples moves there, so that most samples
// have one reader; a large one may have several. A pure function, so that all ranks agree.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vfm::train {

/// Bytes [begin, end) of a sample.
struct ReadingPart {
  std::size_t sample = 0;  ///< its place among the samples
  std::int64_t begin = 0, end = 0;

  /// Whether it is all of a sample of so many bytes.
  bool is_whole(std::int64_t bytes) const { return begin == 0 && end == bytes; }
  bool operator==(const ReadingPart&) const = default;
};

/// Of samples of so many bytes each, at least 1, the parts of each rank, in order. No rank has more
/// than (1 + 1/6) / ranks of all bytes, where samples have pieces (Dataset::has_pieces); else each
/// sample has one reader, whom its middle falls to.
std::vector<std::vector<ReadingPart>> share_reading(std::span<const std::int64_t> bytes, int ranks,
                                                    bool pieces);

}  // namespace vfm::train

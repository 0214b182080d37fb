// Distributes the reading of samples over the ranks that share them: each rank reads about equally
// many bytes.
//
// Samples are laid one after the other by their estimated bytes, and cut into as many parts as
// there are ranks. A cut near a boundary between samples moves there, so that most samples have one
// reader; a large one may have several. A pure function, so that all ranks agree.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vfm::train {

/// Bytes [begin, end) of a sample.
struct ReadingPart {
  std::size_t sample = 0;  ///< place among the shared samples
  std::int64_t begin = 0, end = 0;

  /// True if the part is a whole sample of `bytes` bytes.
  bool is_whole(std::int64_t bytes) const { return begin == 0 && end == bytes; }
  bool operator==(const ReadingPart&) const = default;
};

/// Returns the parts of each rank, in order. `bytes` are the bytes of each sample, at least 1. With
/// `pieces` (Dataset::has_pieces) no rank has more than (1 + 1/6) / ranks of all bytes. Without it
/// each sample has one reader: a cut moves to the nearest boundary.
std::vector<std::vector<ReadingPart>> share_reading(std::span<const std::int64_t> bytes, int ranks,
                                                    bool pieces);

}  // namespace vfm::train

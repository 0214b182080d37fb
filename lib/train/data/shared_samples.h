// Samples that the ranks who share a network read between them.
//
// Each rank reads its part (train/data/reading_parts.h), in any thread, without a word to the
// others. Then they exchange it: all know every sample's sizes, its text, and whether it could be
// read; latents, codes and pixels go to those that need them. So each byte is read once, and a
// sample that could not be read is one that none has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/data/dataset.h"
#include "train/data/reading_parts.h"
#include "train/data/sample.h"
#include "train/step/parallel.h"

namespace vfm::train {

/// One that was read, or why it was not.
struct ReadSample {
  CleanSample sample;   ///< if it was not read its key alone
  std::string failure;  ///< "": it was read
};

/// Sample `i` of the data, as Dataset::read() has it.
ReadSample try_to_read(const Dataset& data, std::size_t i, std::optional<SeenAt> seen);

/// Of a sample that has several readers, what one of them has read.
struct SamplePiece {
  std::string bytes;
  std::string failure;  ///< "": it was read
};

/// One part that a rank reads: a whole sample, or a piece.
struct ReadPart {
  ReadSample sample;
  SamplePiece piece;
  bool whole = false;
};

/// What one rank has read of samples.
struct OwnReading {
  std::vector<std::size_t> samples;             ///< their places in the data, of all of them
  std::vector<std::vector<ReadingPart>> parts;  ///< of each rank
  std::vector<ReadSample> whole;                ///< of this one: those that it read alone, in order
  std::vector<SamplePiece> pieces;              ///< the others

  /// The next of this rank's parts, in order.
  void add(ReadPart part);
};

/// Which rank reads what of these samples; nothing is read yet.
OwnReading share_out(const Dataset& data, std::vector<std::size_t> samples, int ranks);
/// That part of sample `i`.
ReadPart read_part(const Dataset& data, std::size_t i, const ReadingPart& part,
                   std::optional<SeenAt> seen);

/// The part of the rank `rank` of `ranks`. Nothing is exchanged: from any thread.
OwnReading read_own_part(const Dataset& data, std::vector<std::size_t> samples,
                         std::optional<SeenAt> seen, int rank, int ranks);

struct SharedSamples {
  std::vector<ReadSample> samples;  ///< all; on ranks that need no values zeros in their place
  std::int64_t own_bytes = 0;       ///< of those that could be read what this rank read
};

/// What Parallel::sharers() have read, each its part of the same samples, on all of them. Whoever
/// has the first bytes of a sample that several have read puts it together. A collective: in the
/// thread that made the world.
SharedSamples share_samples(const Parallel& parallel, const Dataset& data, OwnReading own);

}  // namespace vfm::train

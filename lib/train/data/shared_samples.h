// Reading of samples by the ranks that share a network.
//
// Each rank reads its part (train/data/reading_parts.h) in any thread, without communication. Then
// the ranks exchange what they read. Each learns the sizes and text of every sample, and whether it
// could be read; latents, codes and pixels go to the ranks that need them. So each byte is read
// once, and the ranks agree on which samples could not be read.
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

/// A sample, or the reason why it could not be read.
struct ReadSample {
  CleanSample sample;   ///< if it could not be read, its key alone
  std::string failure;  ///< "" if it was read
};

/// Calls Dataset::read() for sample `i`; an Error becomes the failure. Throws Error if the store of
/// the data failed (data::store_failed()).
ReadSample try_to_read(const Dataset& data, std::size_t i, std::optional<SeenAt> seen);

/// The piece of a sample that one of its readers has read.
struct SamplePiece {
  std::string bytes;
  std::string failure;  ///< "" if it was read
};

/// One part that a rank reads: a whole sample, or a piece of one.
struct ReadPart {
  ReadSample sample;
  SamplePiece piece;
  bool whole = false;
};

/// The samples and pieces that one rank has read.
struct OwnReading {
  std::vector<std::size_t> samples;             ///< numbers of all shared samples in the data
  std::vector<std::vector<ReadingPart>> parts;  ///< parts of each rank
  std::vector<ReadSample> whole;                ///< samples that this rank reads alone, in order
  std::vector<SamplePiece> pieces;              ///< pieces that this rank reads, in order

  /// Adds the next of this rank's parts, in order.
  void add(ReadPart part);
};

/// Distributes the reading of these samples; nothing is read yet.
OwnReading share_out(const Dataset& data, std::vector<std::size_t> samples, int ranks);
/// Reads this part of sample `i`.
ReadPart read_part(const Dataset& data, std::size_t i, const ReadingPart& part,
                   std::optional<SeenAt> seen);

/// The same of what was fetched of the part (Dataset::fetch()).
ReadPart use_fetched(const Dataset& data, data::SampleBytes fetched, bool whole,
                     std::optional<SeenAt> seen);

/// Reads the part of rank `rank` of `ranks`. Without communication: from any thread.
OwnReading read_own_part(const Dataset& data, std::vector<std::size_t> samples,
                         std::optional<SeenAt> seen, int rank, int ranks);

struct SharedSamples {
  std::vector<ReadSample> samples;  ///< all; values are zeros on ranks that do not need them
  std::int64_t own_bytes = 0;       ///< bytes that this rank read, of samples that could be read
};

/// Exchanges what the ranks of Parallel::sharers() have read of the same samples. The rank with the
/// first bytes of a sample in pieces puts it together. A collective: call it in the thread that
/// made the world.
SharedSamples share_samples(const Parallel& parallel, const Dataset& data, OwnReading own);

}  // namespace vfm::train

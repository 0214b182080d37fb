// How long each rank computes, waits for others and communicates: for timing.jsonl.
//
// A step takes equally long on all ranks, as they meet at its end. They differ in their busy time,
// in which they do not wait for others. The slowest rank is the one to look at.
// Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/json_fwd.h"
#include "dist/world.h"
#include "tensor/tensor.h"
#include "train/recipe/recipe.h"

namespace vfm::train {

/// One rank's timing since the last line.
struct RankTiming {
  std::int64_t steps = 1;
  double seconds = 0;       ///< wall-clock time
  double data_seconds = 0;  ///< the part of `seconds` spent waiting for data
  double read_bytes = 0;    ///< bytes of samples, read from files
  double memory_peak = 0;   ///< bytes
};

/// Work of all ranks in `seconds`.
struct Done {
  double seconds = 0, tokens = 0, samples = 0, flops = 0;
};
/// Rates of all ranks together: "tokens_per_second", "samples_per_second" and "tflops" (10^12 a
/// second). The same names with "_per_rank" are the rates divided by `ranks`.
Json rates_of(const Done& done, int ranks);
/// The rates in a line of timing, in words: "12k tokens/s, 3.1 samples/s". With several ranks the
/// rates of a rank follow. Rates that the line does not have, as in old files, are left out.
std::string rates_words(const Json& timing);
/// The slowest rank in a line of timing: "rank 3 on host node7: busy 1.5 s a step, the mean is 1.2
/// s". "" if the line is of one rank.
std::string slowest_words(const Json& timing);

/// Gathers the timing of all ranks and resets the world's traffic counters. A collective. Returns
/// an empty object on all ranks but rank 0. There it returns:
///   busy_seconds, data_seconds   a step, over the ranks: {mean, most, rank, host}; `rank`, on
///                                `host`, has the most
///   read_bytes                   a step, in the same form: bytes of samples, read from files
///   memory_ranks                 memory_peak in the same form
///   wait_seconds, sent_bytes     a step, by axis of groups (dist/traffic.h): the most of any rank
Json timing_of_ranks(dist::World& world, const RankTiming& own);

/// Peak TFLOP/s of one rank's hardware, for MFU: from the recipe, else for bf16 the known peak of
/// the GPU. 0 if not known.
double peak_tflops(const Recipe& recipe, Device device);

}  // namespace vfm::train

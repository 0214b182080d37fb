// Which of several ranks the others wait for, and for how long they talk: for timing.jsonl.
//
// A step takes equally long on all ranks, as they meet at its end; what differs is how long each is
// busy, which is the time that it did not wait for others. The slowest rank is the one to look at.
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

/// Of one rank, since the last line.
struct RankTiming {
  std::int64_t steps = 1;
  double seconds = 0;       ///< by the clock
  double data_seconds = 0;  ///< of them, waiting for data
  double read_bytes = 0;    ///< of samples, from files
  double memory_peak = 0;   ///< bytes
};

/// What all ranks did together in a time.
struct Done {
  double seconds = 0, tokens = 0, samples = 0, flops = 0;
};
/// Rates of all ranks, "tokens_per_second", "samples_per_second" and "tflops" (10^12 a second), and
/// of each of so many, the same with "_per_rank".
Json rates_of(const Done& done, int ranks);
/// Of a line of timing in words: "12k tokens/s, 3.1 samples/s"; of several ranks also those of
/// each. Of a line of before there were rates of ranks what there is.
std::string rates_words(const Json& timing);

/// A collective. On rank 0, an empty object elsewhere:
///   busy_seconds, data_seconds   a step: {mean, most, rank}, over the ranks, and who has the most
///   read_bytes                   a step, in the same way: of samples, from files
///   memory_ranks                 memory_peak in the same way
///   wait_seconds, sent_bytes     a step, by axis of groups (dist/traffic.h): of the rank with most
/// Begins to count the world's traffic anew.
Json timing_of_ranks(dist::World& world, const RankTiming& own);

/// Of one rank's hardware, for MFU: what the recipe says, else what is known of the GPU in bf16; 0:
/// nothing is.
double peak_tflops(const Recipe& recipe, Device device);

}  // namespace vfm::train

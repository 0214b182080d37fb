// SPDX-License-Identifier: Apache-2.0
#include "train/report/rank_timing.h"

#include <catch2/catch.hpp>

#include "base/json.h"
#include "dist/threads.h"

using namespace vfm;
using namespace vfm::train;

TEST_CASE("rates are told of all ranks and of each") {
  const Json rates = rates_of({.seconds = 2, .tokens = 4000, .samples = 6, .flops = 8e12}, 4);
  CHECK(rates == Json({{"tokens_per_second", 2000.0},
                       {"tokens_per_second_per_rank", 500.0},
                       {"samples_per_second", 3.0},
                       {"samples_per_second_per_rank", 0.75},
                       {"tflops", 4.0},
                       {"tflops_per_rank", 1.0}}));
  CHECK(rates_words(rates) ==
        "2k tokens/s, 3 samples/s, 4 TFLOP/s; a rank 500 tokens/s, 0.75 samples/s, 1 TFLOP/s");
  CHECK(rates_words(rates_of({.seconds = 1, .tokens = 50, .samples = 2, .flops = 3e12}, 1)) ==
        "50 tokens/s, 2 samples/s, 3 TFLOP/s");
  CHECK(rates_words({{"step", 4}, {"tokens_per_second", 1234.0}, {"tflops", 0.5}}) ==
        "1.23k tokens/s, 0.5 TFLOP/s");
  CHECK(slowest_words(rates).empty());  // of one rank
}

TEST_CASE("the slowest rank is named, and what ranks wait and send is told by axis") {
  dist::thread_worlds(3, [](dist::World& world) {
    const int rank = world.rank();
    std::vector<double> values(6, 1.0);
    world.all_reduce_sum(std::span<double>(values));
    const std::int64_t sent = world.traffic().of("world").bytes;
    CHECK(sent > 0);
    const Json told = timing_of_ranks(world, {.steps = 2,
                                              .seconds = 100.0 + 10 * (rank == 1),
                                              .data_seconds = 4.0 * rank,
                                              .memory_peak = rank == 0 ? 90.0 : 30.0});
    if (rank != 0) {
      CHECK(told.empty());
      return;
    }
    CHECK(told["busy_seconds"]["rank"] == 1);
    CHECK(told["busy_seconds"]["most"].get<double>() == Approx(55).margin(1));
    CHECK(told["busy_seconds"]["mean"].get<double>() == Approx(51.67).margin(1));
    CHECK(told["data_seconds"] ==
          Json({{"mean", 2.0}, {"most", 4.0}, {"rank", 2}, {"host", "thread 2"}}));
    CHECK(told["memory_ranks"] ==
          Json({{"mean", 50.0}, {"most", 90.0}, {"rank", 0}, {"host", "thread 0"}}));
    CHECK(slowest_words(told).starts_with("rank 1 on host thread 1: busy 5"));
    CHECK(told["wait_seconds"].contains("world"));
    // Even parts of six numbers: a rank sends two to each other one, twice.
    CHECK(told["sent_bytes"]["world"] == static_cast<double>(sent) / 2);
    CHECK(sent == 2 * 2 * 2 * static_cast<std::int64_t>(sizeof(double)));
    CHECK(world.traffic().of("world").bytes == 0);
  });
}

// SPDX-License-Identifier: Apache-2.0
#include "train/rank_timing.h"

#include <catch2/catch.hpp>

#include "dist/threads.h"

using namespace vfm;
using namespace vfm::train;

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
    CHECK(told["data_seconds"] == Json({{"mean", 2.0}, {"most", 4.0}, {"rank", 2}}));
    CHECK(told["memory_ranks"] == Json({{"mean", 50.0}, {"most", 90.0}, {"rank", 0}}));
    CHECK(told["wait_seconds"].contains("world"));
    // Even parts of six numbers: a rank sends two to each other one, twice.
    CHECK(told["sent_bytes"]["world"] == static_cast<double>(sent) / 2);
    CHECK(sent == 2 * 2 * 2 * static_cast<std::int64_t>(sizeof(double)));
    CHECK(world.traffic().of("world").bytes == 0);
  });
}

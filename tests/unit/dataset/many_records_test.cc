// A million samples planned: what stays in memory, and what the disk holds meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include "support/many_records.h"

#include <catch2/catch.hpp>

#include "io/scratch_file.h"
#include "support/private_bytes.h"

using namespace vfm;
using namespace vfm::dataset;

namespace {

#ifdef VFM_SLOW
constexpr std::uint32_t kRecords = 20'000;
#else
constexpr std::uint32_t kRecords = 1'000'000;
#endif

}  // namespace

TEST_CASE("a million samples are planned in little memory, with less than 300 bytes of disk each") {
  const double before = private_bytes();
  PrivatePeak peak;
  ManyRecords many{.count = kRecords};
  PlannedSamples planned([&](const auto& take) { many.give(take); }, many.options());
  std::uint64_t samples = 0, shards = 0;
  planned.for_each([&](const PlannedShard&, const Item&) { ++samples; });
  for (const PlannedShard& shard : planned.plan.shards)
    shards += shard.samples > 0;
  CHECK(samples == kRecords - many.duplicates());
  CHECK(planned.plan.duplicates.count(DuplicateKind::exact) == many.duplicates());
  CHECK(shards > 1);
  CHECK(static_cast<double>(io::ScratchFile::most_disk_bytes()) < 300.0 * kRecords);
#ifndef VFM_SLOW
  // Sorters have 16 MiB each, and few live at once.
  CHECK(peak.most() - before < 200e6);
#endif
}

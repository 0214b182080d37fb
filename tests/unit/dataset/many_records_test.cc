// Very many samples planned: what stays in memory, and what the disk holds meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include "support/many_records.h"

#include <catch2/catch.hpp>

#include "io/scratch_file.h"
#include "support/private_bytes.h"

using namespace vfm;
using namespace vfm::dataset;

namespace {

void plan_many(std::uint32_t records) {
  [[maybe_unused]] const double before = private_bytes();
  PrivatePeak peak;
  const ManyRecords many{.count = records};
  const double disk = 300.0 * records;
  PlannedSamples planned([&](const auto& take) { many.give(take); }, many.options());
  std::uint64_t samples = 0;
  planned.for_each([&](const PlannedShard&, const Item&) { ++samples; });
  CHECK(samples == records - many.duplicates());
  CHECK(planned.plan.duplicates.count(DuplicateKind::exact) == many.duplicates());
  CHECK(planned.plan.shards.size() > 1);
  CHECK(static_cast<double>(io::ScratchFile::most_disk_bytes()) < disk);
#ifndef VFM_SLOW
  // Sorters have 16 MiB each, and few live at once.
  CHECK(peak.most() - before < 120e6);
#endif
}

}  // namespace

TEST_CASE("many samples are planned in little memory, with less than 300 bytes of disk each") {
#ifdef VFM_SLOW
  plan_many(20'000);
#else
  plan_many(200'000);
#endif
}

TEST_CASE("a million samples are planned in little memory, with less than 300 bytes of disk each",
          "[long]") {
  plan_many(1'000'000);
}

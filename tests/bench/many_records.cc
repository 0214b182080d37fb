// Plans a dataset of very many samples that no tar holds, as vfm-shard does between its two passes,
// and reads the plan through as its second pass does; or asks of as many inputs whether their
// contents came before, as vfm-clip does. Prints one line: records, seconds, the most private
// memory in MiB (without what the program had before), and bytes a record on temporary files.
// Usage: many_records shard|clip COUNT      temporary files in TMPDIR; see many_records.sh
// SPDX-License-Identifier: Apache-2.0
#include "support/many_records.h"

#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "io/first_names.h"
#include "io/scratch_file.h"
#include "support/private_bytes.h"

namespace {

using namespace vfm;

double plan_shards_of(std::uint32_t count) {
  const dataset::ManyRecords many{.count = count};
  dataset::PlannedSamples planned([&](const auto& take) { many.give(take); }, many.options());
  std::uint64_t samples = 0;
  planned.for_each([&](const dataset::PlannedShard&, const dataset::Item&) { ++samples; });
  if (samples != count - many.duplicates()) fail("{} samples of {} are planned", samples, count);
  return static_cast<double>(io::ScratchFile::most_disk_bytes());
}

/// Bytes on the disk of files that have no name: SQLite's, which io::ScratchFile does not count.
double nameless_bytes() {
  double bytes = 0;
  for (const auto& open : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    struct stat file {};
    if (std::filesystem::read_symlink(open, gone).string().ends_with(" (deleted)") &&
        ::stat(open.path().c_str(), &file) == 0)
      bytes += 512.0 * static_cast<double>(file.st_blocks);
  }
  return bytes;
}

/// Returns the bytes on the disk, which only grow.
double ask_of_inputs(std::uint32_t count) {
  const TemporaryFolder folder;
  io::FirstNames names(folder.path);
  std::uint64_t again = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string key = hash_hex("contents " + std::to_string(i % 100 == 99 ? i - 50 : i));
    again +=
        names.put(key, "/data/videos/part-" + key.substr(0, 3) + "/" + key + ".mp4").has_value();
  }
  if (again < count / 100) fail("{} of {} inputs were found again", again, count);
  return nameless_bytes();
}

}  // namespace

int main(int argc, char** argv) try {
  const long count = argc == 3 ? std::atol(argv[2]) : 0;
  if (count < 1) fail("usage: many_records shard|clip COUNT");
  const bool shards = std::strcmp(argv[1], "shard") == 0;
  const double before = private_bytes();
  PrivatePeak peak;
  const auto begin = std::chrono::steady_clock::now();
  const double disk = (shards ? plan_shards_of : ask_of_inputs)(static_cast<std::uint32_t>(count));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%ld %.1f %.1f %.1f\n", count, took.count(), (peak.most() - before) / 1048576,
              disk / static_cast<double>(count));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "many_records: %s\n", error.what());
  return 1;
}

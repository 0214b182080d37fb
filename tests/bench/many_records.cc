// Plans a dataset of very many samples that no tar holds, as vfm-shard does between its two passes,
// and reads the plan through as its second pass does; or asks of as many inputs whether their
// contents came before, as vfm-clip does. Prints one line: records, seconds, the most private
// memory in MiB (without what the program had before), and bytes a record on temporary files.
// Or does the same in parts, as `vfm-shard plan` and `vfm-shard --plan` do: `scan` writes what part
// I of N finds, `plan` plans what all parts found and writes plan.bin, and `read` reads the samples
// of each N-th shard of it, as a writer does. Then the bytes a record are those of the files.
// Usage: many_records shard|clip COUNT               temporary files in TMPDIR; see many_records.sh
//        many_records scan|plan|read COUNT FOLDER I N
// SPDX-License-Identifier: Apache-2.0
#include "support/many_records.h"

#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "dataset/planned.h"
#include "dataset/scan.h"
#include "dataset/scanned.h"
#include "io/atomic_file.h"
#include "io/first_names.h"
#include "io/scratch_file.h"
#include "parts/part_inputs.h"
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

std::string scan_path(const std::string& folder, int part) {
  return io::join_path(folder, fmt::format("scan-{}.bin", part));
}

double written(const std::string& path) {
  return static_cast<double>(std::filesystem::file_size(path));
}

struct PartOf {
  std::string folder;
  int part = 0, parts = 1;
};

double scan_part_of(std::uint32_t count, const PartOf& of) {
  const dataset::ManyRecords many{.count = count};
  const dataset::ShardOptions options = many.options();
  const std::string path = scan_path(of.folder, of.part);
  dataset::ScanFileWriter file(path);
  for (std::uint32_t line = 0; line < many.lines(); ++line) {
    const std::string name = fmt::format("clips/{:06}.tar", line);
    if (parts::part_of_shard(name, of.parts) != of.part) continue;
    dataset::Scanned scanned(of.folder);
    scanned.line = line;
    scanned.shard = true;
    scanned.input = {name, {name, name + ".caption", name + ".embed"}, {false, false, false}, line};
    many.give_line(line, [&](dataset::Item item) {
      item.shape.bin = dataset::bin_of(item, options.edges);
      scanned.items.add(item);
      ++scanned.read;
    });
    file.add(scanned);
  }
  file.commit();
  return written(path);
}

double plan_parts_of(std::uint32_t count, const PartOf& of) {
  const dataset::ManyRecords many{.count = count};
  dataset::ShardOptions options = many.options();
  options.output = of.folder;
  dataset::ScanFiles files(of.folder);
  for (int part = 0; part < of.parts; ++part)
    files.add(scan_path(of.folder, part));
  io::ErrorLog errors(io::join_path(of.folder, "errors.jsonl"), "many_records");
  dataset::Scan scan(options);
  dataset::Gatherer gatherer(scan, no_progress(), errors);
  files.for_each([&](dataset::LineFacts& facts, const dataset::Shapes& shapes,
                     io::ScratchReader items, io::ScratchReader left_out) {
    gatherer.add(facts, shapes, std::move(items), std::move(left_out));
  });
  gatherer.finish();
  dataset::KnownSources known(of.folder);
  share::Slots slots(1);
  const dataset::ShardPlan plan = dataset::plan_shards(scan, options, known, slots);
  dataset::write_plan_file(plan, dataset::plan_file(of.folder));
  io::write_file(io::join_path(of.folder, "plan.json"), dump_json(dataset::plan_json(plan)));
  return static_cast<double>(io::ScratchFile::most_disk_bytes());
}

double read_part_of(std::uint32_t count, const PartOf& of) {
  const std::string path = dataset::plan_file(of.folder);
  const dataset::WritePlan plan = dataset::read_plan_file(path);
  std::uint64_t samples = 0;
  for (std::size_t i = 0; i < plan.shards.size(); ++i) {
    if (of.parts > 1 && i % static_cast<std::size_t>(of.parts) != std::size_t(of.part)) continue;
    const std::string items = dataset::planned_items(plan, plan.shards[i]);
    for (std::string_view rest = items; !rest.empty(); ++samples)
      dataset::take_planned(rest, plan.shapes);
  }
  const dataset::ManyRecords many{.count = count};
  if (of.parts == 1 && samples != count - many.duplicates())
    fail("{} samples of {} are planned", samples, count);
  return written(path);
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
  const long count = argc >= 3 ? std::atol(argv[2]) : 0;
  const std::string what = argc >= 3 ? argv[1] : "";
  const bool in_parts = what == "scan" || what == "plan" || what == "read";
  if (count < 1 || argc != (in_parts ? 6 : 3))
    fail("usage: many_records shard|clip COUNT, or scan|plan|read COUNT FOLDER I N");
  PartOf of;
  if (in_parts) of = {argv[3], std::atoi(argv[4]), std::atoi(argv[5])};
  const auto records = static_cast<std::uint32_t>(count);
  const double before = private_bytes();
  PrivatePeak peak;
  const auto begin = std::chrono::steady_clock::now();
  const double disk = what == "scan"    ? scan_part_of(records, of)
                      : what == "plan"  ? plan_parts_of(records, of)
                      : what == "read"  ? read_part_of(records, of)
                      : what == "shard" ? plan_shards_of(records)
                                        : ask_of_inputs(records);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%ld %.1f %.1f %.1f\n", count, took.count(), (peak.most() - before) / 1048576,
              disk / static_cast<double>(count));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "many_records: %s\n", error.what());
  return 1;
}

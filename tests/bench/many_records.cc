// Plans a dataset of very many samples that no tar holds, as vfm-shard does between its two passes,
// and reads the plan through as its second pass does; or asks of as many inputs whether their
// contents came before, as vfm-clip does. Prints one line: records, seconds, the most private
// memory in MiB (without what the program had before), and bytes a record on temporary files.
// Or does the same in parts, as `vfm-shard plan` and `vfm-shard --plan` do: `scan` writes what part
// I of N finds, `plan` plans what all parts found and writes plan.bin, and `read` reads the samples
// of each N-th shard of it, as a writer does. Then the bytes a record are those of the files.
// Usage: many_records shard|clip COUNT      temporary files in TMPDIR; see many_records.sh
//        many_records scan|plan|read COUNT FOLDER I N
//        many_records names FOLDER COUNT    prints names of videos for vfm-clip list, which exist
//        many_records parts FOLDER COUNT PARTS  makes a folder of shards without contents, as
//            vfm-clip --part and vfm-caption --part leave it: for vfm-shard join and the verb
//            status
// SPDX-License-Identifier: Apache-2.0
#include "support/many_records.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
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
#include "io/file.h"
#include "io/first_names.h"
#include "io/manifest.h"
#include "io/scratch_file.h"
#include "io/store.h"
#include "io/streams.h"
#include "io/text_writer.h"
#include "parts/part_inputs.h"
#include "parts/part_marker.h"
#include "parts/part_run.h"
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

/// A thousand files, half of them small (parts/clip_list.h), and as many links to their folder as
/// give the number of names.
void print_names(const std::string& folder, std::uint64_t count) {
  constexpr std::uint64_t kFiles = 1000;
  for (std::uint64_t i = 0; i < kFiles; ++i) {
    const std::string path = fmt::format("{}/one/v{:03}.mp4", folder, i);
    io::make_directories(io::dir_name(path));
    io::write_file(path, "");
    std::filesystem::resize_file(path, (i % 2 == 0 ? 8 : 64) << 20);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string in = fmt::format("{}/d{:07}", folder, i / kFiles);
    if (i % kFiles == 0) std::filesystem::create_directory_symlink("one", in);
    fmt::print("{}/v{:03}.mp4\n", in, i % kFiles);
  }
}

/// The folder of clips of `count` shards. All subfolders are one, and all tars are one file.
class ManyParts {
 public:
  ManyParts(std::string folder, std::uint64_t count, int parts)
      : folder_(std::move(folder)), count_(count), parts_(parts), store_(folder_ + "/parts") {}

  void make() {
    make_tars();
    store_.create("list.json", dump_json({{"version", 1},
                                          {"parts", parts_},
                                          {"shard_bytes", 256 << 20},
                                          {"buckets", 0},
                                          {"videos", count_ / kShards},
                                          {"bytes", count_ << 28},
                                          {"digits", 2},
                                          {"appended", Json::array()}}));
    store_.create("caption/run.json",
                  dump_json({{"version", 1}, {"tool", "vfm-caption"}, {"parts", parts_}}));
    const auto each = static_cast<std::uint64_t>(parts_);
    for (int part = 0; part < parts_; ++part) {
      const auto number = static_cast<std::uint64_t>(part);
      Tool clip = begin("clip", part);
      for (std::uint64_t i = count_ * number / each; i < count_ * (number + 1) / each; ++i)
        add(clip, i, tar(i));
      end(clip, part);
      Tool caption = begin("caption", part);
      for (std::uint64_t in = 0; in * kFolders < count_; ++in) {
        if (parts::part_of_shard(tar(in * kFolders), parts_) != part) continue;
        for (std::uint64_t i = in * kFolders; i < std::min(count_, (in + 1) * kFolders); ++i)
          add(caption, i, column(i));
      }
      end(caption, part);
    }
  }

 private:
  static constexpr std::uint64_t kFolders = 256, kShards = 3, kBytes = 4096;  // shards of a source
  static constexpr std::uint64_t kMostLinks = 60'000;

  struct Tool {
    std::string name;
    std::unique_ptr<io::TextWriter> manifest;
    parts::PartMarker marker;
  };

  static std::string stem(std::uint64_t i) {
    return fmt::format("{:02x}/{:016x}-00000", i % kFolders, i / kFolders);
  }
  static std::string tar(std::uint64_t i) { return stem(i) + ".tar"; }
  static std::string column(std::uint64_t i) { return stem(i) + ".caption.tar"; }

  void make_tars() const {
    io::make_directories(folder_ + "/00");
    io::write_file(folder_ + "/00/receipt.json", dump_json({{"record", {{"xxh3", "77"}}}}));
    std::string file;
    for (std::uint64_t i = 0; i < count_; i += kFolders) {
      const std::string name = folder_ + "/" + tar(i);
      if (i / kFolders % kMostLinks == 0) {
        file = name;
        io::write_file(name, std::string(kBytes, '\0'));
      } else {
        std::filesystem::create_hard_link(file, name);
      }
      std::filesystem::create_symlink(io::base_name(name), folder_ + "/" + column(i));
      std::filesystem::create_symlink("receipt.json", folder_ + "/" + stem(i) + ".caption.json");
    }
    for (std::uint64_t other = 1; other < kFolders; ++other)
      std::filesystem::create_directory_symlink("00", fmt::format("{}/{:02x}", folder_, other));
  }

  Tool begin(const std::string& name, int part) const {
    const std::string folder = parts::part_folder(folder_, name, part);
    io::make_directories(folder);
    Tool tool{name, std::make_unique<io::TextWriter>(folder + "/manifest.jsonl"), {}};
    tool.marker = {"vfm-" + name,         part, parts_, "inputs", {}, "n1", "2026-11-30T08:00:00Z",
                   "2026-11-30T09:00:00Z"};
    if (name == "clip")
      tool.manifest->add(dump_json(io::begin_record("vfm-clip", name, io::working_folder())) +
                         "\n");
    return tool;
  }
  /// Adds the record of a shard, whose program wrote `output`.
  static void add(Tool& tool, std::uint64_t i, const std::string& output) {
    // Every hundredth source has the contents of one before it.
    const std::uint64_t source = i / kShards, content = source % 100 == 99 ? source - 50 : source;
    Json record = {{"kind", "shard"},
                   {"path", tar(i)},
                   {"samples", 20},
                   {"bytes", kBytes},
                   {"xxh3", hash_hex(output)},
                   {"source", fmt::format("/data/videos/{:06}/{:09}.mp4", source / 1000, source)},
                   {"source_hash", hash_hex(fmt::format("content {}", content))},
                   {"place", source}};
    if (tool.name == "caption") {
      record["columns"] = {{"clip", tar(i)}, {"caption", output}};
      record["caption"] = {{"captions", 20}, {"model", "qwen2.5-vl-7b-instruct"}};
    }
    tool.manifest->add(dump_json(record) + "\n");
    tool.marker.results.outputs.push_back({output, kBytes, record.at("xxh3")});
    ++tool.marker.results.records;
  }
  void end(Tool& tool, int part) {
    const std::uint64_t records = tool.marker.results.records;
    if (tool.name == "clip")
      tool.manifest->add(dump_json(io::end_record(tool.name, records, Json::object(), 0)) + "\n");
    tool.manifest->commit();
    parts::create_marker(store_, tool.name + "/" + parts::part_name(part) + "/done.json",
                         tool.marker);
  }

  std::string folder_;
  std::uint64_t count_;
  int parts_;
  io::FileStore store_;
};

void measure(const std::string& what, std::uint32_t count, const PartOf& of) {
  const double before = private_bytes();
  PrivatePeak peak;
  const auto begin = std::chrono::steady_clock::now();
  const double disk = what == "scan"    ? scan_part_of(count, of)
                      : what == "plan"  ? plan_parts_of(count, of)
                      : what == "read"  ? read_part_of(count, of)
                      : what == "shard" ? plan_shards_of(count)
                                        : ask_of_inputs(count);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%u %.1f %.1f %.1f\n", count, took.count(), (peak.most() - before) / 1048576,
              disk / count);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string what = argc > 1 ? argv[1] : "";
  const long count = argc > 2 ? std::atol(argv[argc == 3 ? 2 : 3]) : 0;
  if ((what == "shard" || what == "clip") && argc == 3 && count > 0)
    measure(what, static_cast<std::uint32_t>(count), {});
  else if ((what == "scan" || what == "plan" || what == "read") && argc == 6 &&
           std::atol(argv[2]) > 0)
    measure(what, static_cast<std::uint32_t>(std::atol(argv[2])),
            {argv[3], std::atoi(argv[4]), std::atoi(argv[5])});
  else if (what == "names" && argc == 4 && count > 0)
    print_names(argv[2], static_cast<std::uint64_t>(count));
  else if (what == "parts" && argc == 5 && count > 0 && std::atoi(argv[4]) > 0)
    ManyParts(argv[2], static_cast<std::uint64_t>(count), std::atoi(argv[4])).make();
  else
    fail(
        "usage: many_records shard|clip COUNT | scan|plan|read COUNT FOLDER I N | "
        "names FOLDER COUNT | parts FOLDER COUNT PARTS");
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "many_records: %s\n", error.what());
  return 1;
}

// SPDX-License-Identifier: Apache-2.0
#include "dataset/scan_parts.h"

#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "dataset/scan_lines.h"
#include "dataset/scanned.h"
#include "io/file.h"
#include "io/folder.h"
#include "parts/part_inputs.h"
#include "parts/part_run.h"
#include "shard/columns.h"
#include "shard/input_totals.h"
#include "shard/part_output.h"
#include "shard/where.h"
#include "shard/whole_parts.h"

namespace vfm::dataset {
namespace {

constexpr const char* kScanTool = "plan";
constexpr const char* kScanFile = "scan.bin";

/// Returns the part that scans a line. Lines that are no shards are of the first part.
int part_of_line(const ScanLine& line, int parts) {
  if (!line.error.empty() || line.record.kind != "shard") return 0;
  const auto path = get_string(line.record.json, "path");
  return path ? parts::part_of_shard(*path, parts) : 0;
}

/// Returns the options that decide what a scan finds.
Json scan_settings(const ShardOptions& options) {
  const bool compared = !options.keep_duplicates && options.duplicate_threshold;
  return {{"version", 1},
          {"where", options.where},
          {"without", options.without.empty() ? Json() : Json(io::hash_file(options.without))},
          {"balance", options.balance.json()},
          {"vector", options.compared_member()},
          {"compared", compared},
          {"rekey", options.rekey},
          {"max_member", options.limits.member},
          {"edges", {options.edges.resolution, options.edges.aspect, options.edges.seconds}}};
}

/// The digests of the parts' inputs and settings.
class ScanDigests {
 public:
  explicit ScanDigests(const ShardOptions& options) : options_(options) {}

  /// Reads the input, for all parts or for `only` one.
  void read(int parts, std::optional<int> only) {
    const std::string settings = dump_json(scan_settings(options_));
    ScanLines lines(options_.inputs);
    while (auto line = lines.next()) {
      ++lines_;
      const int part = part_of_line(*line, parts);
      if (only && part != *only) continue;
      std::string& digest = digests_.try_emplace(part, settings).first->second;
      digest = hash_hex(digest + input_of(*line));
    }
    streams_ = lines.streams();
    none_ = hash_hex(settings);
    is_read_ = true;
  }
  bool is_read() const { return is_read_; }
  const std::string& of(int part) const {
    const auto found = digests_.find(part);
    return found == digests_.end() ? none_ : found->second;
  }
  std::uint64_t lines() const { return lines_; }
  const io::InputStreams& streams() const { return streams_; }

 private:
  /// A shard that cannot be read is another input when it can. The number of the line counts, since
  /// the order of lines decides the order of samples.
  static std::string input_of(ScanLine& line) {
    const std::string begin = fmt::format("\n{} ", line.number);
    if (!line.error.empty()) return begin + line.error;
    const std::string name =
        line.record.json->contains("path") ? line.record.path() : line.record.where;
    if (line.record.kind != "shard") return begin + line.record.kind + " " + name;
    try {
      shard::complete_shard(line.record);
      const auto hidden = line.record.json->find("duplicate_hashes");
      return begin + name + "\n" + shard::tars_version(line.record) +
             (hidden == line.record.json->end() ? "" : dump_json(*hidden));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::runtime) throw;
      return begin + name + "\n" + error.what();
    }
  }

  const ShardOptions& options_;
  std::map<int, std::string> digests_;
  std::string none_;
  std::uint64_t lines_ = 0;
  io::InputStreams streams_;
  bool is_read_ = false;
};

io::InputStreams scan_part(const ShardOptions& options, const parts::Part& part, int parts,
                           share::Slots& slots, Progress& progress, shard::PartOutput& output) {
  const WithoutList without(options.without);
  const UnpackPlace unpacked(part.temporary());
  const std::string path = part.path(kScanFile);
  ScanFileWriter file(path);
  ScanLines lines(options.inputs);
  std::uint64_t shards = 0, samples = 0;
  scan_lines(
      {options, without, unpacked.folder(), false}, slots,
      [&] {
        auto line = lines.next();
        while (line && part_of_line(*line, parts) != part.number())
          line = lines.next();
        return line;
      },
      [&](Scanned& scanned) {
        part.check_lost();
        for (const io::Fault& fault : scanned.errors)
          output.fault(fault, !scanned.shard && fault.cause == Cause::open);
        file.add(scanned);
        shards += scanned.shard;
        samples += scanned.read;
        progress.add(scanned.read);
      });
  part.check_lost();
  file.commit();
  output.wrote_file(path);
  output.record({{"kind", "scan"}, {"path", path}, {"shards", shards}, {"samples", samples}});
  return lines.streams();
}

/// Throws Error if the file of a part is not as the part wrote it, or the part had other inputs.
std::string checked_file(const std::string& folder, const parts::PartMarker& marker,
                         const std::string& digest) {
  const auto again = [&](const std::string& why) {
    fail("part {} {}; give 'vfm-shard plan --part {}/{}' again", marker.part, why, marker.part,
         marker.parts);
  };
  if (marker.inputs != digest) again("was scanned with other inputs or options");
  std::string path = io::join_path(folder, kScanFile);
  const auto& outputs = marker.results.outputs;
  if (outputs.size() != 1 || io::size_of(path) != outputs[0].bytes ||
      io::hash_file(path) != outputs[0].xxh3)
    fail("'{}' is not as its part wrote it; remove '{}', and do this part again", path, folder);
  return path;
}

}  // namespace

long scan_parts(const ShardOptions& options, const parts::PartChoice& choice, share::Slots& slots,
                Progress& progress, io::ManifestWriter& manifest) {
  if (!options.where.empty()) shard::Where{options.where};
  shard::check_part_inputs(options.inputs);
  io::make_directories(options.output);
  ScanDigests digests(options);
  progress.start("samples", 0);
  shard::PartSteps steps;
  steps.digest_of = [&](int part, int parts) {
    if (!digests.is_read()) digests.read(parts, choice.part);
    return digests.of(part);
  };
  steps.make = [&](const parts::Part& part, const shard::PartShards& shards,
                   shard::PartOutput& output) {
    return scan_part(options, part, shards.parts, slots, progress, output);
  };
  return shard::for_each_part({options.output, kScanTool, choice, {}}, manifest, steps);
}

bool has_scan_parts(const std::string& directory) {
  return parts::count_parts(directory, kScanTool).has_value();
}

Scan gather_parts(const ShardOptions& options, Progress& progress, io::ErrorLog& errors) {
  const auto inputs = parts::part_inputs(options.output, kScanTool);
  if (!inputs) fail("'{}' has no parts of a scan", options.output);
  if (!inputs->missing.empty())
    fail("of vfm-shard plan --part, {}; no plan is made", inputs->message(options.output));
  ScanDigests digests(options);
  digests.read(inputs->parts, std::nullopt);
  ScanFiles files(options.output);
  shard::for_each_marker(options.output, kScanTool,
                         [&](const std::string& folder, const parts::PartMarker& marker) {
                           files.add(checked_file(folder, marker, digests.of(marker.part)));
                         });
  if (files.lines() != digests.lines())
    fail("the parts of '{}' have {} lines of the input, which has {}; scan the parts again",
         options.output, files.lines(), digests.lines());
  Scan scan(options);
  Gatherer gatherer(scan, progress, errors);
  progress.start("samples", shard::count_samples(options.inputs));
  files.for_each([&](LineFacts& facts, const Shapes& shapes, io::ScratchReader items,
                     io::ScratchReader left_out) {
    gatherer.add(facts, shapes, std::move(items), std::move(left_out));
  });
  gatherer.finish();
  scan.streams = digests.streams();
  return scan;
}

}  // namespace vfm::dataset

// SPDX-License-Identifier: Apache-2.0
#include "dataset/planned_parts.h"

#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "dataset/finish.h"
#include "dataset/planned.h"
#include "dataset/scan.h"
#include "dataset/write.h"
#include "io/file.h"
#include "io/folder_lock.h"
#include "parts/part_run.h"
#include "shard/part_output.h"
#include "shard/receipt.h"
#include "shard/whole_parts.h"

namespace vfm::dataset {
namespace {

std::string part_digest(const WritePlan& plan, int part, int parts) {
  return hash_hex(fmt::format("{} {}/{}", plan.digest, part, parts));
}

/// Returns the records of all shards in the order of the plan, from the manifests of the parts.
std::vector<Json> written_records(const std::string& directory, const WritePlan& plan) {
  std::vector<Json> records(plan.shards.size());
  shard::for_each_marker(
      directory, kWriteTool, [&](const std::string& folder, const parts::PartMarker& marker) {
        if (marker.inputs != part_digest(plan, marker.part, marker.parts))
          fail("part {0} is of another plan; give 'vfm-shard --plan {1} --part {0}/{2}' again",
               marker.part, plan_file(directory), marker.parts);
        auto at = static_cast<std::size_t>(marker.part);
        const std::string manifest = io::join_path(folder, "manifest.jsonl");
        shard::for_each_part_record(directory, manifest, [&](Json& record) {
          shard::read_of_part(folder, manifest, [&] {
            if (at >= records.size()) fail("it has too many lines");
            need_string(record, "xxh3", "the record");
            const std::string tar = io::join_path(directory, plan.shards.at(at).path);
            if (record.at("path") != tar) fail("it does not name '{}'", tar);
            shard::check_written(tar, record);
          });
          records[at] = std::move(record);
          at += static_cast<std::size_t>(marker.parts);
        });
      });
  for (std::size_t i = 0; i < records.size(); ++i)
    if (records[i].is_null())
      fail("no part of '{}' wrote '{}'; write the parts again", directory, plan.shards[i].path);
  return records;
}

}  // namespace

long write_planned(const std::string& path, const parts::PartChoice& choice, share::Slots& slots,
                   Progress& progress, io::ManifestWriter& manifest) {
  const WritePlan plan = read_plan_file(path);
  const std::string directory = io::dir_name(path);
  shard::PartSteps steps;
  steps.digest_of = [&](int part, int parts) { return part_digest(plan, part, parts); };
  steps.make = [&](const parts::Part& part, const shard::PartShards& of,
                   shard::PartOutput& output) {
    const UnpackPlace unpacked(part.temporary());
    const ShardWriter writer(plan, directory, unpacked.folder());
    const ShardChoice shards{static_cast<std::size_t>(part.number()),
                             static_cast<std::size_t>(of.parts)};
    write_shards(plan, writer, shards, slots, progress, [&](Json& record) {
      output.wrote(record.at("path"), record);
      output.record(record);
    });
    return io::InputStreams();
  };
  return shard::for_each_part({directory, kWriteTool, choice, {}}, manifest, steps);
}

void join_planned(const std::string& directory, io::ManifestWriter* manifest) {
  shard::complete_tools(directory, {kWriteTool});
  const io::FolderLock lock = io::lock_folder(directory);
  const WritePlan plan = read_plan_file(plan_file(directory));
  const std::vector<Json> records = written_records(directory, plan);
  const Json summary = write_dataset_files(directory, plan, records);
  for (const Json& record : records)
    if (manifest) manifest->write(record);
  log_info("{} samples in {} shards", summary["samples"].get<std::uint64_t>(), records.size());
}

}  // namespace vfm::dataset

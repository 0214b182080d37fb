// SPDX-License-Identifier: Apache-2.0
#include "dataset/dataset.h"

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/ordered.h"
#include "base/units.h"
#include "dataset/finish.h"
#include "dataset/folder.h"
#include "dataset/plan.h"
#include "dataset/report.h"
#include "dataset/scan.h"
#include "dataset/write.h"
#include "io/file.h"
#include "io/folder_lock.h"
#include "io/manifest.h"
#include "io/scratch_file.h"
#include "report/html.h"
#include "shard/where.h"

namespace vfm::dataset {
namespace {

/// A name in the filter that no sample knows is a slip of the pen, not a filter that keeps nothing.
void check_fields(const std::string& where, const Scan& scan) {
  if (where.empty() || scan.read == 0) return;
  const std::vector<std::string> known(scan.fields.begin(), scan.fields.end());
  const shard::Where parsed(where);
  for (const std::string& field : parsed.fields()) {
    if (scan.fields.contains(field) || known.empty()) continue;
    const auto near = shard::near_matches(field, known);
    std::string hint;
    for (const std::string& name : near.empty() ? known : near)
      hint += (hint.empty() ? "" : ", ") + name;
    fail_usage("--where: no sample has a field '{}'; {}: {}", field,
               near.empty() ? "there are" : "did you mean", hint);
  }
}

/// What is planned of a part of the samples would stand in the way of the whole.
void check_whole(const ShardOptions& options, const io::InputStreams& input, io::ErrorLog& errors) {
  const std::string why = input.broken_off();
  if (!why.empty()) {
    errors.finish();
    report::write_not_complete(options.report, "vfm-shard: " + options.output, why);
  }
  input.check_whole("no dataset is written");
}

/// A folder that is gone at the end, whatever comes.
struct Scratch {
  std::string path;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

/// A shard to write, and its samples.
struct WriteJob {
  const PlannedShard* shard = nullptr;
  std::string items;  ///< PlannedItems::pack()
};

std::vector<Json> write_shards(const Scan& scan, ShardPlan& plan, const ShardOptions& options,
                               Slots& slots, Progress& progress, io::ManifestWriter& manifest) {
  const ShardWriter writer(scan, options);
  std::vector<Json> records;
  PlannedItems items(scan, plan);
  std::size_t next = 0;
  progress.start("shards", plan.shards.size());
  for_each_ordered<WriteJob, Json>(
      slots,
      [&]() -> std::optional<WriteJob> {
        if (next == plan.shards.size()) return std::nullopt;
        const PlannedShard& shard = plan.shards[next++];
        return WriteJob{&shard, items.pack(shard.samples)};
      },
      [&](WriteJob& job) { return writer.write(*job.shard, job.items); },
      [&](Json& record) {
        manifest.write(record);
        progress.add();
        records.push_back(std::move(record));
      });
  return records;
}

}  // namespace

long run(const ShardOptions& options, Slots& slots, Progress& progress,
         io::ManifestWriter& manifest) {
  if (!options.where.empty()) shard::Where{options.where};  // throws before the folder is made
  const io::File lock = io::lock_folder(options.output);
  EarlierDataset earlier = read_earlier(options);
  const Scratch scratch{unpack_folder(options.output)};
  io::ErrorLog errors(io::join_path(options.output, "errors.jsonl"), "vfm-shard");
  Scan scan = scan_shards(options, slots, progress, errors);
  check_whole(options, scan.streams, errors);
  check_fields(options.where, scan);
  if (scan.items.there() == 0) {
    errors.finish();
    fail("no sample is left: {} read, {} of them filtered out, {} errors", scan.read, scan.filtered,
         errors.count());
  }
  ShardPlan plan = plan_shards(scan, options, earlier.sources, slots);
  prepare_folder(options, earlier, scan, plan);
  write_duplicates(options, plan);
  const std::vector<Json> records = write_shards(scan, plan, options, slots, progress, manifest);
  const Json summary = write_dataset_files(options, scan, plan, records);
  if (!options.report.empty()) write_shard_report(options.report, scan, plan, summary);
  errors.finish();
  log_info("{} samples in {} shards; {} filtered out, {} duplicates, {} errors",
           summary["samples"].get<std::uint64_t>(), records.size(), scan.filtered,
           plan.duplicates.count(), errors.count());
  log_info("{} on the disk for a while",
           format_bytes(static_cast<double>(io::ScratchFile::most_disk_bytes())));
  return static_cast<long>(errors.count());
}

}  // namespace vfm::dataset

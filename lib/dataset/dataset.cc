// SPDX-License-Identifier: Apache-2.0
#include "dataset/dataset.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "dataset/field_makers.h"
#include "dataset/finish.h"
#include "dataset/folder.h"
#include "dataset/plan.h"
#include "dataset/planned.h"
#include "dataset/report.h"
#include "dataset/scan.h"
#include "dataset/scan_parts.h"
#include "dataset/write.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/folder_lock.h"
#include "io/manifest.h"
#include "io/scratch_file.h"
#include "report/html.h"
#include "shard/where.h"

namespace vfm::dataset {
namespace {

constexpr std::string_view kWhere = "--where";

/// In SQLite every number is less than every text, so a comparison of the wrong type gives the same
/// result for all samples.
void check_compared(const Scan& scan) {
  for (const shard::Comparison& one : scan.compared)
    if (one.differs > 0 && one.fits == 0)
      fail_usage(
          "--where: '{}' is a {} in all samples that have it, and is compared with the {} {}; {}",
          one.field, one.text ? "number (true is 1, false 0)" : "text",
          one.text ? "text" : "number", one.constant,
          one.text ? "leave out the quotes" : "texts stand in single quotes");
}

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& one : names)
    list += (list.empty() ? "" : ", ") + one;
  return list;
}

/// A name that no sample has is treated as a misspelling, because the option would have no effect.
void check_name(std::string_view option, const char* what, const std::string& name,
                const std::set<std::string>& there) {
  if (there.contains(name)) return;
  if (there.empty()) fail_usage("{}: no sample has a {} '{}', or any", option, what, name);
  const std::string maker = maker_of(name);
  const std::vector<std::string> known(there.begin(), there.end()), made = made_names();
  // The names of a family, such as "caption_*", can be misspelled too.
  if (std::ranges::find(made, name) == made.end()) {
    if (const auto slips = shard::slips_of(name, known); !slips.empty())
      fail_usage("{}: no sample has a {} '{}'; did you mean: {}", option, what, name,
                 listed(slips));
    if (const auto slips = shard::slips_of(name, made); !slips.empty())
      fail_usage("{}: no sample has a {} '{}'; did you mean {}, which {} makes", option, what, name,
                 slips[0], maker_of(slips[0]));
  }
  if (!maker.empty())
    fail_usage("{}: no sample has a {} '{}', which {} makes", option, what, name, maker);
  const auto near = shard::near_matches(name, known);
  fail_usage("{}: no sample has a {} '{}'; {}: {}", option, what, name,
             near.empty() ? "there are" : "did you mean", listed(near.empty() ? known : near));
}

/// A member of an object is not a field: --where needs ->> for it, and --balance does not take it.
void check_field(std::string_view option, const std::string& name, const Scan& scan) {
  const auto found = std::ranges::find_if(scan.inside, [&](const std::string& one) {
    return one == name || one.ends_with("." + name);
  });
  if (scan.fields.contains(name) || found == scan.inside.end())
    return check_name(option, "field", name, scan.fields);
  const std::string object = found->substr(0, found->find('.')),
                    member = found->substr(object.size() + 1);
  if (option == kWhere)
    fail_usage("{}: no sample has a field '{}'; did you mean {} ->> '{}'", option, name, object,
               member);
  fail_usage("{}: '{}' is a member of the object '{}', and only whole fields are balanced", option,
             member, object);
}

void check_names(const ShardOptions& options, const Scan& scan) {
  if (scan.read == 0) return;
  if (!options.where.empty() && !scan.fields.empty()) {
    const shard::Where parsed(options.where);
    for (const std::string& field : parsed.fields())
      check_field(kWhere, field, scan);
    check_compared(scan);
  }
  if (!options.near_member.empty())
    check_name("--duplicate-vector", "member", options.near_member, scan.vectors);
  for (const BalanceRule& rule : options.balance.rules)
    if (rule.clusters())
      check_name("--balance", "member", rule.name, scan.vectors);
    else
      check_field("--balance", rule.name, scan);
  std::set<std::string> numbers;
  for (const auto& [hash, field] : scan.numbers.fields())
    numbers.insert(field.name);
  for (const std::string& name : options.report_scores)
    check_name("--scores", "number", name, numbers);
}

/// Only a warning: the line may be misspelled, but its source may also have left the input earlier.
void tell_idle_lines(const Scan& scan) {
  const std::deque<std::string>& lines = scan.without.lines();
  if (scan.taken_out.size() == lines.size()) return;
  std::size_t idle = 0, first = 0;
  for (std::size_t i = lines.size(); i-- > 0;)
    if (!scan.taken_out.contains(i)) ++idle, first = i;
  log_warning("--without: {} of {} lines name nothing that is in the input; '{}' is {}", idle,
              lines.size(), lines[first], idle == 1 ? "the one" : "the first");
}

/// A plan of an incomplete input would get in the way of the plan of the whole input.
void check_whole(const ShardOptions& options, const io::InputStreams& input, io::ErrorLog& errors) {
  const std::string why = input.broken_off();
  if (!why.empty()) {
    errors.finish();
    report::write_not_complete(options.report, "Dataset", options.output, why);
  }
  input.check_whole("no dataset is written");
}

void check_scan(const ShardOptions& options, const Scan& scan, io::ErrorLog& errors, bool whole) {
  check_whole(options, scan.streams, errors);
  check_names(options, scan);
  if (whole) tell_idle_lines(scan);
  if (scan.items.there() == 0) {
    errors.finish();
    fail("no sample is left: {} read, {} of them filtered out, {}{} errors", scan.read,
         scan.filtered,
         options.without.empty() ? std::string()
                                 : fmt::format("{} taken out, ", scan.left_out.count()),
         errors.count());
  }
}

struct PageScratch {
  explicit PageScratch(std::string folder) : path(std::move(folder)) {}
  ~PageScratch() {
    try {
      io::remove_file(io::join_path(path, "errors.jsonl"));
    } catch (const Error&) {  // The next run for this page removes it.
    } catch (const Stopped&) {
    }
    io::remove_if_empty(path);
  }
  PageScratch(const PageScratch&) = delete;
  PageScratch& operator=(const PageScratch&) = delete;
  std::string path;
};

/// Writes only the report page.
long look(ShardOptions options, share::Slots& slots, Progress& progress) {
  report::make_page_folder(options.report);
  options.output = io::join_path(io::dir_name(options.report),
                                 "." + io::base_name(options.report) + ".vfm-shard");
  // Lock before PageScratch, which removes files that may belong to a running process.
  const io::FolderLock lock = io::lock_folder(options.output);
  const PageScratch scratch(options.output);
  const UnpackPlace unpacked(options.output);
  io::ErrorLog errors(io::join_path(options.output, "errors.jsonl"), "vfm-shard");
  Scan scan = scan_shards(options, slots, progress, errors);
  check_scan(options, scan, errors, true);
  KnownSources known(options.output);
  ShardPlan plan = plan_shards(scan, options, known, slots);
  write_shard_report(options, scan, plan, nullptr, slots);
  errors.finish();
  return static_cast<long>(errors.count());
}

/// The steps of a run before the shards are written. `scan_input` makes the scan. `finish` does the
/// rest, and returns the number of samples in the dataset. `whole` is false in a dry run.
SampleCounts plan_folder(const ShardOptions& options, share::Slots& slots, bool whole,
                         const std::function<Scan(io::ErrorLog& errors)>& scan_input,
                         const std::function<std::uint64_t(Scan& scan, ShardPlan& plan)>& finish,
                         long& faults) {
  // Both throw for a malformed option before the folder is made.
  if (!options.where.empty()) shard::Where{options.where};
  WithoutList{options.without};
  const io::FolderLock lock = io::lock_folder(options.output);
  EarlierDataset earlier = read_earlier(options);
  const UnpackPlace unpacked(options.output);
  io::ErrorLog errors(io::join_path(options.output, "errors.jsonl"), "vfm-shard");
  Scan scan = scan_input(errors);
  check_scan(options, scan, errors, whole);
  ShardPlan plan = plan_shards(scan, options, earlier.sources, slots);
  prepare_folder(options, earlier, plan);
  write_duplicates(options, plan);
  write_left_out(options, scan.left_out);
  const std::uint64_t stay = finish(scan, plan);
  errors.finish();
  const SampleCounts found{.read = scan.read,
                           .filtered = scan.filtered,
                           .without = scan.left_out.count(LeftOutReason::without),
                           .duplicates = plan.duplicates.count(),
                           .balanced = scan.left_out.count(LeftOutReason::balance),
                           .stay = stay};
  log_info(
      "{} samples in {} shards; {} filtered out, {} taken out, {} duplicates, {} left out for "
      "balance, {} errors",
      found.stay, plan.shards.size(), found.filtered, found.without, found.duplicates,
      found.balanced, errors.count());
  if (const std::uint64_t bytes = io::ScratchFile::most_disk_bytes(); bytes > 0)
    log_info("temporary files took up to {}", format_bytes(static_cast<double>(bytes)));
  faults = static_cast<long>(errors.count());
  return found;
}

}  // namespace

long run(const ShardOptions& options, share::Slots& slots, Progress& progress,
         io::ManifestWriter& manifest, SampleCounts* counts) {
  if (options.output.empty()) return look(options, slots, progress);
  long faults = 0;
  const SampleCounts found = plan_folder(
      options, slots, counts == nullptr,
      [&](io::ErrorLog& errors) { return scan_shards(options, slots, progress, errors); },
      [&](Scan& scan, ShardPlan& plan) {
        const ShardWriter writer(plan, options.output, unpack_folder(options.output));
        std::vector<Json> records;
        write_shards(plan, writer, {}, slots, progress, [&](Json& record) {
          manifest.write(record);
          records.push_back(std::move(record));
        });
        const Json summary = write_dataset_files(options.output, plan, records);
        if (!options.report.empty()) write_shard_report(options, scan, plan, summary, slots);
        return summary["samples"].get<std::uint64_t>();
      },
      faults);
  if (counts) *counts = found;
  return faults;
}

long make_plan(const ShardOptions& options, share::Slots& slots, Progress& progress,
               io::ManifestWriter& manifest) {
  const bool gathers = has_scan_parts(options.output);
  std::uint64_t shards = 0;
  long faults = 0;
  const std::string path = plan_file(options.output);
  const SampleCounts found = plan_folder(
      options, slots, true,
      [&](io::ErrorLog& errors) {
        return gathers ? gather_parts(options, progress, errors)
                       : scan_shards(options, slots, progress, errors);
      },
      [&](Scan&, ShardPlan& plan) {
        write_plan_file(plan, path);
        shards = plan.shards.size();
        std::uint64_t samples = 0;
        for (const PlannedShard& shard : plan.shards)
          samples += shard.samples;
        return samples;
      },
      faults);
  manifest.write({{"kind", "plan"}, {"path", path}, {"shards", shards}, {"samples", found.stay}});
  return faults;
}

}  // namespace vfm::dataset

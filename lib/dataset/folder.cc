// SPDX-License-Identifier: Apache-2.0
#include "dataset/folder.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "dataset/planned_parts.h"
#include "io/at_once.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "parts/part_run.h"
#include "shard/receipt.h"

namespace vfm::dataset {
namespace {

constexpr const char* kWayOut = "choose another folder, or --force to replace it";

std::string in(const ShardOptions& options, const std::string& name) {
  return io::join_path(options.output, name);
}

/// Returns text such as "seed is 0 there, and now 1", or "" if the options are equal.
std::string difference(const Json& there, const Json& now) {
  std::string out;
  const auto compare = [&](const std::string& name) {
    const Json before = there.value(name, Json()), value = now.value(name, Json());
    if (before != value)
      out += fmt::format("{}{} is {} there, and now {}", out.empty() ? "" : "; ", name,
                         dump_json(before), dump_json(value));
  };
  for (const auto& option : now.items())
    compare(option.key());
  for (const auto& option : there.items())
    if (!now.contains(option.key())) compare(option.key());
  return out;
}

/// A damaged plan.json must not name files outside the folder.
bool is_ours(const std::string& path) {
  return !path.starts_with('/') && path.find("..") == std::string::npos &&
         shard::plain_tar_path(path).ends_with(".tar");
}

void take_plan(const Json& plan, const std::string& where, EarlierDataset& earlier) {
  earlier.hash = need_string(plan, "plan", where);
  const auto shards = plan.find("shards");
  if (shards == plan.end() || !shards->is_array()) fail("{} has no shards", where);
  for (const Json& shard : *shards)
    if (const std::string path = need_string(shard, "path", where); is_ours(path))
      earlier.shards.emplace_back(path, get_string(shard, "plan").value_or(""));
}

void check_options(const ShardOptions& options, const Json& plan) {
  const auto there = plan.find("options");
  if (there == plan.end() || !there->is_object())
    fail_usage("'{}' holds a dataset whose plan.json does not list its options; {}", options.output,
               kWayOut);
  if (const std::string what = difference(*there, options_json(options)); !what.empty())
    fail_usage("'{}' holds a dataset of other options ({}); {}", options.output, what, kWayOut);
}

void remove_shard(const ShardOptions& options, const std::string& path) {
  const std::string tar = in(options, path);
  const std::string bin = io::dir_name(tar);
  for (const std::string& file : shard::shard_files(tar)) {
    io::remove_file(file);
    if (!io::is_remote(file))
      io::remove_file(io::join_path(bin, "." + io::base_name(file) + ".tmp"));
  }
  io::remove_if_empty(bin);
  io::remove_if_empty(io::dir_name(bin));
}

/// Removes the files that mark the dataset as complete.
void remove_dataset_files(const ShardOptions& options, const EarlierDataset& earlier) {
  std::set<std::string> names = {"dataset.json", "samples.bin", "wids.json", ".nv-meta/index.uuid"};
  for (const auto& [path, plan] : earlier.shards)
    names.insert(path.substr(0, path.find('/')) + "/wids.json");
  for (const std::string& name : names)
    io::remove_file(in(options, name));
}

std::vector<std::string> stale_shards(const ShardOptions& options, const EarlierDataset& earlier,
                                      const ShardPlan& plan) {
  std::set<std::pair<std::string, std::string>> wanted;
  if (!options.force)
    for (const PlannedShard& shard : plan.shards)
      wanted.emplace(shard.path, shard.plan);
  std::vector<std::string> stale;
  for (const auto& shard : earlier.shards)
    if (!wanted.contains(shard)) stale.push_back(shard.first);
  return stale;
}

/// Input shards must not be part of the dataset that is replaced, because they would be lost.
void check_input(const ShardOptions& options, const EarlierDataset& earlier,
                 const WritePlan& plan) {
  std::set<std::string> there;
  for (const auto& shard : earlier.shards)
    there.insert(io::canonical_path(in(options, shard.first)));
  for (const InputShard& shard : plan.inputs)
    for (const std::string& tar : shard.tars)
      if (there.contains(io::canonical_path(tar)))
        fail_usage(
            "'{}' is an input and a part of the dataset that would be replaced; choose another "
            "folder",
            tar);
}

}  // namespace

EarlierDataset read_earlier(const ShardOptions& options) {
  EarlierDataset earlier(options.output);
  const std::string path = in(options, "plan.json"), sources = in(options, "sources.jsonl");
  earlier.there = io::file_exists(path);
  if (!earlier.there) return earlier;
  Json plan;
  try {
    plan = parse_json(io::read_file(path), "'" + path + "'");
    take_plan(plan, "'" + path + "'", earlier);
  } catch (const Error& error) {
    if (!options.force) fail_usage("{}; {}", error.what(), kWayOut);
  }
  if (options.force) return earlier;
  check_options(options, plan);
  try {
    earlier.sources = KnownSources::read(sources, options.output);
  } catch (const Error& error) {
    fail_usage(
        "{}: it says in which split each source is; put it back, or give --force to assign all "
        "sources again",
        error.what());
  }
  return earlier;
}

void prepare_folder(const ShardOptions& options, const EarlierDataset& earlier, ShardPlan& plan) {
  if (!earlier.there && !options.force)
    io::for_each_at_once(plan.shards.size(),
                         io::requests_at_once(options.output),
                         [&](std::size_t i) {
                           const std::string tar = in(options, plan.shards[i].path);
                           if (io::file_exists(tar))
                             fail_usage("'{}' is where a shard would be written; {}", tar, kWayOut);
                         });
  if (!earlier.sources.empty() && !plan.any_known)
    fail_usage("'{}' holds a dataset of other sources; {}", options.output, kWayOut);
  if (earlier.there && (options.force || earlier.hash != plan.hash)) {
    check_input(options, earlier, plan);
    const std::vector<std::string> stale = stale_shards(options, earlier, plan);
    log_info("'{}' is there: {} of its {} shards stay", options.output,
             earlier.shards.size() - stale.size(), earlier.shards.size());
    remove_dataset_files(options, earlier);
    if (!stale.empty()) parts::forget_parts(options.output, kWriteTool);  // also of earlier plans
    for (const std::string& path : stale)
      remove_shard(options, path);
  }
  // Write plan.json last: until then the old plan.json names the shards that must be removed.
  plan.sources->update();
  io::update_file(in(options, "plan.json"), dump_json_pretty(plan_json(plan)));
}

}  // namespace vfm::dataset

// SPDX-License-Identifier: Apache-2.0
#include "shard/finished_dataset.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "io/at_once.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "shard/receipt.h"

namespace vfm::shard {

namespace {

io::Record record_of(const std::string& directory, const std::string& name) {
  const std::string path = io::join_path(directory, name);
  const std::string notes = receipt_path(path);
  const Json facts = parse_json(io::read_file(notes), "'" + notes + "'");
  Json record = {{"kind", "shard"}, {"path", path}};
  for (const auto& [key, value] : facts.items())
    if (key != "kind" && key != "path" && key != "plan") record[key] = value;
  return {"shard", std::move(record), "'" + io::join_path(directory, "plan.json") + "'"};
}

/// A plan of unknown origin must not lead to files outside the folder of the dataset.
bool stays_inside(const std::string& name) {
  const std::filesystem::path path(name);
  return !name.empty() && path.is_relative() &&
         std::find(path.begin(), path.end(), std::filesystem::path("..")) == path.end();
}

bool has_tars(const std::string& directory) {
  const std::vector<io::FolderEntry> list = io::entries(directory);
  return std::ranges::any_of(
      list, [](const io::FolderEntry& entry) { return entry.name.ends_with(".tar"); });
}

/// Calls act(). Its errors say that this is no finished dataset.
template <class Act>
void in_dataset(const std::string& directory, const Act& act) {
  try {
    act();
  } catch (const std::exception& error) {
    fail_usage("'{}' is not a finished dataset of vfm-shard: {}", directory, error.what());
  }
}

std::vector<std::string> names_of_plan(const std::string& directory) {
  const std::string plan_path = io::join_path(directory, "plan.json");
  if (!io::file_exists(io::join_path(directory, "dataset.json")))
    fail("it has no dataset.json, which vfm-shard writes last{}",
         has_tars(directory) ? "; for the shards in it name them: '" + directory + "'/*.tar" : "");
  const Json plan = parse_json(io::read_file(plan_path), "'" + plan_path + "'");
  std::vector<std::string> names;
  for (const Json& shard : plan.at("shards")) {
    names.push_back(need_string(shard, "path", "the plan"));
    if (!stays_inside(names.back()))
      fail("its plan names a shard outside of it, '{}'", names.back());
  }
  return names;
}

template <class Use>
void for_each_planned(const std::string& directory, const Use& use) {
  in_dataset(directory, [&] {
    const std::vector<std::string> names = names_of_plan(directory);
    // Of a bucket many records at once, and else one after the other.
    const std::size_t at_once = io::requests_at_once(directory);
    for (std::size_t begin = 0; begin < names.size(); begin += at_once) {
      std::vector<std::optional<FinishedShard>> some(std::min(at_once, names.size() - begin));
      io::for_each_at_once(some.size(), at_once, [&](std::size_t i) {
        some[i] = FinishedShard{names[begin + i], record_of(directory, names[begin + i])};
      });
      for (std::optional<FinishedShard>& one : some)
        use(one->name, std::move(one->record));
    }
  });
}

}  // namespace

std::vector<std::string> planned_names(const std::string& directory) {
  std::vector<std::string> names;
  in_dataset(directory, [&] { names = names_of_plan(directory); });
  return names;
}

std::vector<FinishedShard> planned_shards(const std::string& directory) {
  std::vector<FinishedShard> shards;
  for_each_planned(directory, [&](const std::string& name, io::Record record) {
    shards.push_back({name, std::move(record)});
  });
  return shards;
}

DatasetRecords::DatasetRecords(const std::string& directory) : directory_(directory) {
  for_each_planned(directory,
                   [&](const std::string& name, const io::Record&) { names_.add(name); });
}

std::optional<io::Record> DatasetRecords::next() {
  if (next_ == names_.size()) return std::nullopt;
  try {
    return record_of(directory_, std::string(names_.name(next_++)));
  } catch (const std::exception& error) {
    fail_usage("'{}' is not a finished dataset of vfm-shard: {}", directory_, error.what());
  }
}

std::vector<io::Record> dataset_records(const std::string& directory) {
  std::vector<io::Record> records;
  for (FinishedShard& shard : planned_shards(directory))
    records.push_back(std::move(shard.record));
  return records;
}

}  // namespace vfm::shard

// SPDX-License-Identifier: Apache-2.0
#include "shard/finished_dataset.h"

#include <utility>

#include "base/error.h"
#include "io/file.h"
#include "shard/receipt.h"

namespace vfm::shard {

std::vector<PlannedShard> planned_shards(const std::string& directory) {
  const std::string plan_path = io::join_path(directory, "plan.json");
  std::vector<PlannedShard> shards;
  try {
    if (!io::file_exists(io::join_path(directory, "dataset.json")))
      fail("it has no dataset.json, which vfm-shard writes last");
    const Json plan = parse_json(io::read_file(plan_path), "'" + plan_path + "'");
    for (const Json& shard : plan.at("shards")) {
      const std::string name = need_string(shard, "path", "the plan");
      const std::string path = io::join_path(directory, name);
      const std::string notes = receipt_path(path);
      const Json facts = parse_json(io::read_file(notes), "'" + notes + "'");
      Json record = {{"kind", "shard"}, {"path", path}};
      for (const auto& [key, value] : facts.items())
        if (key != "kind" && key != "path" && key != "plan") record[key] = value;
      shards.push_back({name, {"shard", std::move(record), "'" + plan_path + "'"}});
    }
  } catch (const std::exception& error) {
    fail_usage("'{}' is not a finished dataset of vfm-shard: {}", directory, error.what());
  }
  return shards;
}

std::vector<io::Record> dataset_records(const std::string& directory) {
  std::vector<io::Record> records;
  for (PlannedShard& shard : planned_shards(directory))
    records.push_back(std::move(shard.record));
  return records;
}

}  // namespace vfm::shard

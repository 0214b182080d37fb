// SPDX-License-Identifier: Apache-2.0
#include "dataset/finish.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "dataset/write.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/text_writer.h"
#include "shard/dataset_card.h"
#include "shard/dataset_meta.h"
#include "shard/writer.h"

namespace vfm::dataset {
namespace {

shard::MediaMetadata media_of(const Item& item, std::string_view extension) {
  if (extension != item.shape.media) return {};
  Json json = Json::object();
  const auto set = [&](const char* name, double value) {
    if (value <= 0) return;
    if (value == static_cast<double>(static_cast<std::int64_t>(value)) &&
        std::string_view(name).find("duration") == std::string_view::npos &&
        std::string_view(name).find("fps") == std::string_view::npos)
      json[name] = static_cast<std::int64_t>(value);
    else
      json[name] = value;
  };
  switch (media_kind(item.shape.media)) {
    case MediaKind::video:
      set("video_duration", item.seconds);
      set("video_num_frames", item.frames);
      set("video_fps", item.fps);
      set("video_width", item.width);
      set("video_height", item.height);
      return {"av", std::move(json)};
    case MediaKind::image:
      if (item.shape.image_format.empty()) return {};
      set("width", item.width);
      set("height", item.height);
      json["format"] = item.shape.image_format;
      json["mode"] = item.shape.image_mode;
      return {"image", std::move(json)};
    case MediaKind::other:
      break;
  }
  return {};
}

void add(Json& object, const std::string& name, const Json& record, double seconds) {
  Json& entry = object[name];
  if (entry.is_null())
    entry = {{"samples", std::uint64_t{0}},
             {"shards", std::uint64_t{0}},
             {"bytes", std::uint64_t{0}},
             {"seconds", 0.0}};
  entry["samples"] = entry["samples"].get<std::uint64_t>() + record["samples"].get<std::uint64_t>();
  entry["shards"] = entry["shards"].get<std::uint64_t>() + 1;
  entry["bytes"] = entry["bytes"].get<std::uint64_t>() + record["bytes"].get<std::uint64_t>();
  entry["seconds"] = entry["seconds"].get<double>() + seconds;
}

Json summary(const WritePlan& plan, const std::vector<Json>& records) {
  Json total, splits = Json::object(), bins = Json::object();
  for (std::size_t i = 0; i < records.size(); ++i) {
    const double seconds = plan.shards[i].seconds;
    add(total, "all", records[i], seconds);
    add(splits, plan.shards[i].split, records[i], seconds);
    add(bins, plan.shards[i].bin, records[i], seconds);
  }
  Json json = {{"kind", "dataset"}, {"version", 1}, {"plan", plan.hash}};
  json.update(total["all"]);
  json["splits"] = std::move(splits);
  json["bins"] = std::move(bins);
  json.update(plan.counts);
  json["options"] = plan.options;
  return json;
}

/// Returns the configurations for load_dataset(): one per format of media, with the most samples
/// first.
std::vector<shard::CardConfig> card_configs(const WritePlan& plan) {
  std::map<std::string, shard::CardConfig> by_media;
  std::map<std::string, std::size_t> samples;
  const auto add_once = [](std::vector<std::string>& list, const std::string& word) {
    if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
  };
  for (const PlannedShard& planned : plan.shards) {
    const Shape& shape = planned.shape;
    const std::string name = shape.media.empty() ? "json" : shape.media;
    shard::CardConfig& config = by_media[name];
    config.name = name;
    samples[name] += planned.samples;
    if (!shape.media.empty()) add_once(config.members, shape.media);
    add_once(config.members, "json");
    std::istringstream words(shape.extras);
    for (std::string extra; words >> extra;)
      add_once(config.members, extra);
    add_once(config.files[planned.split], shard::numbered_glob(planned.path));
  }
  std::vector<shard::CardConfig> configs;
  for (auto& [name, config] : by_media)
    configs.push_back(std::move(config));
  std::ranges::stable_sort(
      configs, [&](const auto& a, const auto& b) { return samples[a.name] > samples[b.name]; });
  return configs;
}

}  // namespace

void write_duplicates(const ShardOptions& options, ShardPlan& plan) {
  const std::string path = io::join_path(options.output, "duplicates.jsonl");
  if (plan.duplicates.count() == 0) {
    io::remove_file(path);
    return;
  }
  io::TextWriter file(path);
  plan.duplicates.for_each([&](const Duplicate& d) {
    Json record = {{"key", d.key},
                   {"duplicate_of", d.keeper},
                   {"kind", kDuplicateKinds[static_cast<std::size_t>(d.kind)]},
                   {"cosine", d.cosine},
                   {"reason", d.reason}};
    if (d.kind == DuplicateKind::near) record["method"] = plan.compared.at(d.set).method();
    file.add(dump_json(record) + "\n");
    return true;
  });
  file.update();
}

void write_left_out(const ShardOptions& options, LeftOutList& list) {
  const std::string path = io::join_path(options.output, "left_out.jsonl");
  if (list.count() == 0) {
    io::remove_file(path);
    return;
  }
  io::TextWriter file(path);
  list.for_each([&](const LeftOut& sample) {
    file.add(dump_json(sample.json()) + "\n");
    return true;
  });
  file.update();
}

Json write_dataset_files(const std::string& directory, const WritePlan& plan,
                         const std::vector<Json>& records) {
  std::vector<shard::DatasetShard> shards;
  for (std::size_t i = 0; i < records.size(); ++i)
    shards.push_back({plan.shards[i].path, plan.shards[i].split, records[i]["samples"],
                      records[i].value("tar_bytes", records[i]["bytes"]), records[i]["xxh3"]});
  PlannedItems items(plan);
  Item item;
  std::pair<std::size_t, std::int64_t> at{0, -1};  // Shard and row of `item`.
  shard::write_energon_meta(
      directory, shards,
      [&](std::size_t shard, std::int64_t row, std::string_view, std::string_view extension) {
        if (std::pair(shard, row) != at) {
          if (!items.next(item)) fail("the shards in '{}' are not those planned", directory);
          at = {shard, row};
        }
        return media_of(item, extension);
      },
      true);
  shard::write_wids(directory, "vfm", shards);
  shard::write_dataset_card(
      directory, "vfm-shard",
      "# A dataset of videos\n\nWebDataset shards that vfm-shard wrote: "
      "DIR/SPLIT/BIN/BIN-000000.tar. dataset.json counts them.\nThe format is "
      "described in vfm-shard(5).",
      card_configs(plan));
  Json json = summary(plan, records);
  io::update_file(io::join_path(directory, "dataset.json"), dump_json_pretty(json));
  return json;
}

}  // namespace vfm::dataset

// SPDX-License-Identifier: Apache-2.0
#include "pack/folder.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/folder_lock.h"
#include "io/places.h"
#include "shard/receipt.h"

namespace vfm::pack {
namespace {

void remove_shard(const std::string& tar) {
  for (const std::string& file : shard::shard_files(tar))
    io::remove_file(file);
}

/// Returns the tars in the folders of `directory` that have notes of vfm-pack. Does not read the
/// notes of tars for which `passed_over` returns true.
std::vector<std::string> shards_in(const std::string& directory,
                                   const std::function<bool(const std::string&)>& passed_over) {
  std::vector<std::string> tars;
  constexpr std::string_view kNotes = ".json";
  for (const io::FolderEntry& split : io::entries(directory)) {
    if (!split.folder) continue;
    const std::string folder = io::join_path(directory, split.name);
    for (const io::FolderEntry& file : io::entries(folder)) {
      if (!file.name.ends_with(kNotes)) continue;
      const std::string path = io::join_path(folder, file.name);
      const std::string tar = path.substr(0, path.size() - kNotes.size()) + ".tar";
      if (passed_over(tar)) continue;
      check_stop();
      try {
        const Json json = parse_json(io::read_file(path), "notes");
        if (json.is_object() && json.value("tool", "") == "vfm-pack") tars.push_back(tar);
      } catch (const std::exception&) {
        continue;  // not notes of vfm-pack
      }
    }
  }
  std::sort(tars.begin(), tars.end());
  return tars;
}

/// Returns the options that differ, like "size is 64 there, and now 32".
std::string difference(const Json& there, const Json& now) {
  std::string out;
  for (const auto& [name, value] : now.items()) {
    const Json other = there.is_object() ? there.value(name, Json()) : Json();
    if (other != value)
      out += fmt::format("{}{} is {} there, and now {}", out.empty() ? "" : "; ", name,
                         dump_json(other), dump_json(value));
  }
  return out.empty() ? "see pack.json there" : out;
}

/// Returns the input shard of the latents at `tar`, or "" if there are no readable notes.
std::string input_of(const std::string& tar) {
  const std::string path = shard::receipt_path(tar);
  if (!io::file_exists(path)) return "";
  try {
    return get_string(parse_json(io::read_file(path), path), "input").value_or("");
  } catch (const std::exception&) {
    return "";  // the shard is packed again
  }
}

}  // namespace

Json LatentTokenizer::to_json() const {
  return {{"config", config},
          {"channels", channels},
          {"vocabulary", vocabulary},
          {"statistics", statistics}};
}

LatentTokenizer LatentTokenizer::from_json(const Json& json, const std::string& what) {
  LatentTokenizer facts;
  facts.channels = static_cast<int>(need_integer(json, "channels", what));
  facts.vocabulary = static_cast<int>(need_integer(json, "vocabulary", what));
  facts.config = json.value("config", Json());
  facts.statistics = json.value("statistics", Json());
  if (!facts.config->is_object()) fail("{} has no configuration of a tokenizer", what);
  return facts;
}

PackFolder::PackFolder(const std::string& directory, const Json& settings, int channels, bool force,
                       Use use)
    : directory_(directory), settings_(settings), channels_(channels) {
  if (use == Use::whole)
    lock_.emplace(io::lock_folder(directory));
  else
    io::make_directories(directory);
  const std::string path = io::join_path(directory, "pack.json");
  if (!force)
    check_settings(directory, settings);
  else if (io::file_exists(path))
    remove_all();
  io::update_file(path, dump_json_pretty(settings));
}

void PackFolder::check_settings(const std::string& directory, const Json& settings) {
  const std::string path = io::join_path(directory, "pack.json");
  if (!io::file_exists(path)) return;
  Json there;
  try {
    there = parse_json(io::read_file(path), path);
  } catch (const Error&) {
    // Unreadable options count as other options.
  }
  if (there != settings)
    fail_usage(
        "'{}' holds latents of other options ({}); choose another folder, or --force to replace "
        "them",
        directory, difference(there, settings));
}

void PackFolder::remove_all() const {
  remove_latents_json();
  for (const std::string& tar : shards_in(directory_, [](const auto&) { return false; })) {
    remove_shard(tar);
    remove_indexes(io::dir_name(tar));
  }
}

void PackFolder::remove_indexes(const std::string& folder) {
  io::remove_file(io::join_path(folder, "index.jsonl"));
  io::remove_file(io::join_path(folder, "index.bin"));
}

void PackFolder::remove_latents_json() const {
  io::remove_file(io::join_path(directory_, "latents.json"));
}

std::string PackFolder::tar_path(const std::string& split, const std::string& name) const {
  return io::join_path(io::join_path(directory_, split), name);
}

/// Returns the notes of a tar if they describe the tar that is on disk.
std::optional<ShardNotes> PackFolder::find_part(const std::string& tar, const Json& made_from,
                                                const shard::ReadLimits& limits) const {
  const shard::Receipt receipt(shard::receipt_path(tar), "made_from", made_from);
  ShardNotes notes;
  const Json found = receipt.find([&](const Json& json) {
    shard::check_limit(json, limits);
    shard::check_error_limits(json);
    notes = parse_notes(json, receipt.path(), channels_);
    static_cast<void>(facts_of(notes));
    if (!notes.record->is_null()) shard::check_written(tar, notes.record);
  });
  return found.is_null() ? std::nullopt : std::optional(std::move(notes));
}

std::map<std::string, ShardNotes> PackFolder::find_finished(const std::string& name,
                                                            const std::string& own_split,
                                                            const Json& made_from,
                                                            const shard::ReadLimits& limits) const {
  std::map<std::string, ShardNotes> parts;
  std::vector<std::string> splits;
  const auto look = [&](const std::string& split) {
    if (parts.contains(split)) return;
    auto found = find_part(tar_path(split, name), made_from, limits);
    if (!found) return;
    splits = found->splits;
    parts[split] = std::move(*found);
  };
  // The notes name the other splits, so that only the folder of a new shard is listed.
  look(own_split);
  for (const std::string& split : std::vector<std::string>(splits))
    look(split);
  if (parts.empty())
    for (const io::FolderEntry& folder : io::entries(directory_))
      if (folder.folder) look(folder.name);
  const auto is_part = [&](const std::string& split) { return parts.contains(split); };
  if (parts.size() != splits.size() || !std::ranges::all_of(splits, is_part)) parts.clear();
  return parts;
}

bool PackFolder::has(const std::string& split, const std::string& name) const {
  const auto found = splits_.find(split);
  return found != splits_.end() && found->second.names.find(name);
}

void PackFolder::begin_shard(const std::string& tar, const std::string& input) {
  if (const std::string there = input_of(tar); !there.empty()) {
    if (there != io::name_from(directory_, input))
      fail_usage(
          "'{}' was made of '{}', and now would be of '{}'; choose another folder, or --force to "
          "replace all latents in this one",
          tar, io::named_from(directory_, there), input);
    goes_on();
  }
  remove_latents_json();
  io::make_directories(io::dir_name(tar));
  remove_shard(tar);
}

void PackFolder::write_notes(const std::string& tar, const ShardNotes& notes) const {
  shard::Receipt(shard::receipt_path(tar), "made_from", notes.made_from).write(notes_text(notes));
}

void PackFolder::add(const std::string& split, const std::string& name, const TarFacts& facts) {
  Split& into = splits_[split];
  const auto [number, fresh] = into.names.add(name);
  if (fresh) into.facts.emplace_back();
  into.facts[number] = facts;
}

std::int64_t PackFolder::without_text() const {
  std::int64_t count = 0;
  for (const auto& [split, shards] : splits_)
    for (const TarFacts& facts : shards.facts)
      count += facts.without_text;
  return count;
}

data::FrameCount PackFolder::frames() const {
  data::FrameCount all;
  for (const auto& [split, shards] : splits_)
    for (const TarFacts& facts : shards.facts)
      all.add(facts.frames);
  return all;
}

/// If an earlier run packed the same dataset, removes its shards that are not in this run, because
/// a program that reads all tars would train on them. Otherwise returns true if there are such
/// shards.
bool PackFolder::settle_strangers() const {
  const std::vector<std::string> strangers = shards_in(directory_, [&](const std::string& tar) {
    return has(io::base_name(io::dir_name(tar)), io::base_name(tar));
  });
  if (strangers.empty()) return false;
  const std::int64_t count = std::ssize(strangers);
  log_warning("'{}' {} {} that {} not of this input, and {}", directory_,
              goes_on_ ? "held" : "also holds", counted(count, "shard"), is_or_are(count),
              goes_on_ ? "now removed" : "not in the index");
  if (goes_on_) remove_latents_json();
  for (const std::string& tar : strangers) {
    const std::string folder = io::dir_name(tar);
    if (!splits_.contains(io::base_name(folder))) remove_indexes(folder);
    if (!goes_on_) continue;
    remove_shard(tar);
    io::remove_if_empty(folder);
  }
  return !goes_on_;
}

}  // namespace vfm::pack

// SPDX-License-Identifier: Apache-2.0
#include "pack/folder.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "data/index_file.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder_lock.h"
#include "shard/dataset_card.h"
#include "shard/dataset_meta.h"
#include "shard/receipt.h"

namespace vfm::pack {
namespace {

namespace fs = std::filesystem;

void remove_file(const std::string& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) fail_errno(error.value(), "cannot remove '{}'", path);
}

/// Of a split.
void remove_indexes(const std::string& folder) {
  remove_file(io::join_path(folder, "index.jsonl"));
  remove_file(io::join_path(folder, "index.bin"));
}

/// A finished shard and all that stands beside it.
void remove_shard(const std::string& tar) {
  for (const std::string& file : shard::shard_files(tar))
    remove_file(file);
}

Json to_json(const ShardNotes& notes) {
  Json entries = Json::array();
  for (const data::Entry& entry : notes.entries)
    entries.push_back(data::to_json(entry));
  return {{"tool", "vfm-pack"},
          {"input", notes.input},
          {"made_from", notes.made_from},
          {"splits", notes.splits},
          {"max_member", notes.max_member ? Json(*notes.max_member) : Json()},
          {"record", notes.record},
          {"text_encoder", notes.text_encoder},
          {"without_text", notes.without_text},
          {"sums", notes.sums.to_json()},
          {"errors", io::to_json(notes.errors)},
          {"entries", std::move(entries)}};
}

ShardNotes parse_notes(const Json& json, const std::string& path, int channels) {
  ShardNotes notes;
  notes.input = json.value("input", "");
  notes.made_from = json.at("made_from");
  notes.splits = json.at("splits").get<std::vector<std::string>>();
  if (const Json& limit = json.at("max_member"); !limit.is_null())
    notes.max_member = limit.get<std::uint64_t>();
  notes.record = json.at("record");
  notes.text_encoder = json.at("text_encoder");
  notes.without_text = json.at("without_text").get<std::int64_t>();
  notes.sums = ChannelSums::from_json(json.at("sums"), channels);
  notes.errors = io::parse_faults(json.at("errors"));
  for (const Json& entry : json.at("entries"))
    notes.entries.push_back(data::parse_entry(entry, path));
  return notes;
}

/// The notes of vfm-pack in the folders of `directory`, as paths of their tars.
std::vector<std::string> shards_in(const std::string& directory) {
  std::vector<std::string> tars;
  std::error_code error;
  for (const auto& split : fs::directory_iterator(directory, error)) {
    if (!split.is_directory(error)) continue;
    for (const auto& file : fs::directory_iterator(split.path(), error)) {
      if (file.path().extension() != ".json") continue;
      try {
        const Json json = parse_json(io::read_file(file.path().string()), "notes");
        if (json.is_object() && json.value("tool", "") == "vfm-pack")
          tars.push_back(fs::path(file.path()).replace_extension(".tar").string());
      } catch (const std::exception&) {
        continue;  // not ours
      }
    }
  }
  std::sort(tars.begin(), tars.end());
  return tars;
}

/// What of the options differs: "size is 64 there, and now 32".
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

/// Of which shard the latents at `tar` were made; empty if there are none, or it is not known.
std::string input_of(const std::string& tar) {
  const std::string path = shard::receipt_path(tar);
  if (!io::file_exists(path)) return "";
  try {
    return get_string(parse_json(io::read_file(path), path), "input").value_or("");
  } catch (const std::exception&) {
    return "";  // damaged, and remade
  }
}

}  // namespace

PackFolder::PackFolder(const std::string& directory, const Json& settings, int channels, bool force)
    : directory_(directory),
      lock_(io::lock_folder(directory)),
      settings_(settings),
      channels_(channels) {
  const std::string path = io::join_path(directory, "pack.json");
  if (io::file_exists(path)) {
    Json there;
    try {
      there = parse_json(io::read_file(path), path);
    } catch (const Error&) {
      // Not options of ours: others.
    }
    if (there != settings && !force)
      fail_usage(
          "'{}' holds latents of other options ({}); choose another folder, or --force to replace "
          "them",
          directory, difference(there, settings));
    if (force) remove_all();
  }
  io::update_file(path, dump_json_pretty(settings));
}

void PackFolder::remove_all() const {
  remove_file(io::join_path(directory_, "latents.json"));
  for (const std::string& tar : shards_in(directory_)) {
    remove_shard(tar);
    remove_indexes(io::dir_name(tar));
  }
}

std::string PackFolder::tar_path(const std::string& split, const std::string& name) const {
  return io::join_path(io::join_path(directory_, split), name);
}

/// The notes of one part, if they are those of the tar that stands beside them.
std::optional<ShardNotes> PackFolder::find_part(const std::string& tar, const Json& made_from,
                                                const shard::ReadLimits& limits) const {
  const shard::Receipt receipt(shard::receipt_path(tar), "made_from", made_from);
  ShardNotes notes;
  const Json found = receipt.find([&](const Json& json) {
    shard::check_limit(json, limits);
    notes = parse_notes(json, receipt.path(), channels_);
    if (!notes.record.is_null()) shard::check_written(tar, notes.record);
  });
  return found.is_null() ? std::nullopt : std::optional(std::move(notes));
}

std::map<std::string, ShardNotes> PackFolder::find_finished(const std::string& name,
                                                            const Json& made_from,
                                                            const shard::ReadLimits& limits) const {
  std::map<std::string, ShardNotes> parts;
  std::vector<std::string> splits;
  std::error_code error;
  for (const auto& folder : fs::directory_iterator(directory_, error)) {
    if (!folder.is_directory(error)) continue;
    const std::string split = folder.path().filename().string();
    auto found = find_part(tar_path(split, name), made_from, limits);
    if (!found) continue;
    splits = found->splits;
    parts[split] = std::move(*found);
  }
  const auto is_part = [&](const std::string& split) { return parts.contains(split); };
  if (parts.size() != splits.size() || !std::ranges::all_of(splits, is_part)) parts.clear();
  return parts;
}

bool PackFolder::has(const std::string& split, const std::string& name) const {
  const auto found = shards_.find(split);
  return found != shards_.end() && found->second.contains(name);
}

void PackFolder::begin_shard(const std::string& tar, const std::string& input) {
  if (const std::string there = input_of(tar); !there.empty()) {
    if (fs::path(there).lexically_normal() != fs::path(input).lexically_normal())
      fail_usage(
          "'{}' was made of '{}', and now would be of '{}'; choose another folder, or --force to "
          "replace all latents in this one",
          tar, there, input);
    goes_on();
  }
  remove_file(io::join_path(directory_, "latents.json"));
  io::make_directories(io::dir_name(tar));
  remove_shard(tar);
}

void PackFolder::write_notes(const std::string& tar, const ShardNotes& notes) const {
  shard::Receipt(shard::receipt_path(tar), "made_from", notes.made_from)
      .write(dump_json(to_json(notes)) + "\n");
}

void PackFolder::add(const std::string& split, const std::string& name, ShardNotes notes) {
  shards_[split][name] = std::move(notes);
}

std::int64_t PackFolder::without_text() const {
  std::int64_t count = 0;
  for (const auto& [split, shards] : shards_)
    for (const auto& [name, notes] : shards)
      count += notes.without_text;
  return count;
}

/// What other programs read: Energon's .nv-meta and the card for load_dataset(). Shards are listed
/// one by one where others stand beside them.
void PackFolder::write_for_others(bool alone, bool discrete) const {
  std::vector<shard::DatasetShard> all;
  shard::CardConfig card{
      "default", {discrete ? "codes.npy" : "latent.npy", "text.npy", "json"}, {}};
  for (const auto& [split, shards] : shards_)
    for (const auto& [name, notes] : shards) {
      if (notes.entries.empty()) continue;
      const std::string path = io::join_path(split, name);
      all.push_back({path, split, notes.record.at("samples"), notes.record.at("bytes"),
                     notes.record.at("xxh3")});
      std::vector<std::string>& files = card.files[split];
      if (!alone || files.empty()) files.push_back(alone ? split + "/*.tar" : path);
    }
  shard::write_energon_meta(directory_, all, [](auto&&...) { return shard::MediaMetadata{}; });
  shard::write_dataset_card(
      directory_, "vfm-pack",
      "# Latents of videos\n\nWebDataset shards that vfm-pack wrote, with the "
      "tokenizer and the statistics in latents.json.\nThe format is described in "
      "vfm-latents(5).",
      {card});
}

/// Shards that are not of this run: those of the same set are stale, and a reader of all tars would
/// train on them. Those of another set stay. Whether any does.
bool PackFolder::settle_strangers() const {
  std::vector<std::string> strangers;
  for (const std::string& tar : shards_in(directory_)) {
    const auto split = shards_.find(io::base_name(io::dir_name(tar)));
    if (split == shards_.end() || !split->second.contains(io::base_name(tar)))
      strangers.push_back(tar);
  }
  if (strangers.empty()) return false;
  log_warning("'{}' {} {} shards that are not of this input{}", directory_,
              goes_on_ ? "held" : "also holds", strangers.size(),
              goes_on_ ? "; they are removed" : "; they are not in the index");
  if (goes_on_) remove_file(io::join_path(directory_, "latents.json"));
  for (const std::string& tar : strangers) {
    const std::string folder = io::dir_name(tar);
    if (!shards_.contains(io::base_name(folder))) remove_indexes(folder);
    if (!goes_on_) continue;
    remove_shard(tar);
    std::error_code ignored;
    fs::remove(folder, ignored);  // where it is empty now
  }
  return !goes_on_;
}

void PackFolder::write_index(const std::string& split, const Json& info) const {
  const std::string folder = io::join_path(directory_, split);
  std::string lines;
  std::vector<std::uint64_t> begins;
  for (const auto& [name, notes] : shards_.at(split))
    for (const data::Entry& entry : notes.entries) {
      begins.push_back(lines.size());
      lines += dump_json(data::to_json(entry)) + "\n";
    }
  if (lines.empty()) return remove_indexes(folder);
  const std::string list = io::join_path(folder, "index.jsonl");
  const std::string path = io::join_path(folder, "index.bin");
  io::update_file(list, lines);
  if (data::index_fits(path, list, info)) return;
  io::AtomicFile file = io::AtomicFile::await(path);
  data::IndexWriter writer(file, begins.size(), info);
  std::size_t next = 0;
  for (const auto& [name, notes] : shards_.at(split))
    for (const data::Entry& entry : notes.entries)
      writer.add(entry, begins[next++]);
  writer.finish(list);
  file.commit();
}

void PackFolder::finish(const models::VideoTokenizer& tokenizer) {
  Json splits = Json::object(), text_encoder;
  ChannelSums train, all;
  std::size_t total = 0;
  for (const auto& [split, shards] : shards_) {
    std::size_t samples = 0, count = 0;
    std::int64_t tokens = 0;
    for (const auto& [name, notes] : shards) {
      if (notes.entries.empty()) continue;
      samples += notes.entries.size();
      ++count;
      for (const data::Entry& entry : notes.entries)
        tokens += data::token_count(entry);
      all.add(notes.sums);
      if (split == "train") train.add(notes.sums);
      if (text_encoder.is_null()) text_encoder = notes.text_encoder;
    }
    total += samples;
    if (samples == 0) continue;
    splits[split] = {{"samples", samples}, {"shards", count}, {"tokens", tokens}};
  }
  if (total == 0) fail("no sample could be packed");
  const bool strangers = settle_strangers();
  write_for_others(!strangers, tokenizer.vocabulary() > 0);
  Json json = {{"version", 1},
               {"tokenizer", tokenizer.config().to_json()},
               {"text_encoder", text_encoder},
               {"channels", channels_}};
  if (tokenizer.vocabulary() > 0) {
    json["vocabulary"] = tokenizer.vocabulary();
  } else if (const auto own = tokenizer.statistics()) {
    json.update(own->to_json());
  } else {
    if (train.count == 0)
      log_warning("there is no 'train' split: the channel statistics are of all samples");
    json.update(models::channel_statistics(train.count > 0 ? train : all));
  }
  json["splits"] = std::move(splits);
  json["settings"] = settings_;
  const std::string text = dump_json_pretty(json);
  for (const auto& [split, shards] : shards_)
    write_index(split, parse_json(text, "latents.json"));
  io::update_file(io::join_path(directory_, "latents.json"), text);
}

}  // namespace vfm::pack

// SPDX-License-Identifier: Apache-2.0
#include "pack/feed.h"

#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/xxh3.h"
#include "io/file.h"

namespace vfm::pack {
namespace {

bool is_folder_name(const std::string& name) {
  return shard::valid_key(name);
}

std::string output_name(std::string_view path) {
  return io::stem(path) + ".tar";
}

/// Returns "split" of the sample's json. Ignores malformed json, which make_latents() reports.
std::optional<std::string> own_split(const shard::Sample& sample) {
  const std::string* text = sample.find("json");
  if (text == nullptr || text->find("split") == std::string::npos) return std::nullopt;
  Json json;
  try {
    json = parse_json(*text, "its 'json'");
  } catch (const Error&) {
    return std::nullopt;
  }
  const auto found = json.find("split");
  if (!json.is_object() || found == json.end() || found->is_null()) return std::nullopt;
  if (!found->is_string()) fail("the split in its json is not a text: {}", dump_json(*found));
  return found->get<std::string>();
}

}  // namespace

std::string split_of(const shard::Sample& sample, const ClipShard& shard) {
  const auto own = own_split(sample);
  if (!own) return shard.split;
  if (shard.split_given && *own != shard.split)
    fail("its json says split '{}', the record of its shard '{}': make them agree", *own,
         shard.split);
  if (!is_folder_name(*own)) fail("its split '{}' cannot name a folder", *own);
  return *own;
}

Json sources_of(const ClipShard& shard) {
  Json sources = Json::array();
  for (const std::string& tar : shard.tars) {
    const std::uint64_t bytes = shard::open_tar(tar).size();
    std::string hash;
    if (tar == shard.path && get_integer(shard.record, "bytes") == static_cast<std::int64_t>(bytes))
      hash = get_string(shard.record, "xxh3").value_or("");
    if (hash.empty()) hash = io::hash_file(tar);
    sources.push_back({{"bytes", bytes}, {"xxh3", hash}});
  }
  return sources;
}

PackFeed::PackFeed(const std::vector<std::string>& inputs, const shard::ReadLimits& limits,
                   Finished finished, const shard::PartShards* part)
    : limits_(limits), finished_(std::move(finished)), input_(open(inputs, part)) {}

shard::ShardInput PackFeed::open(const std::vector<std::string>& inputs,
                                 const shard::PartShards* part) {
  const auto bad = [this](io::Fault fault) { bad_.push_back(std::move(fault)); };
  const std::vector<std::string> before = {"caption", "embed"};
  return part ? shard::ShardInput(*part, inputs, bad, before)
              : shard::ShardInput(inputs, bad, before);
}

PackFeed::~PackFeed() = default;

std::optional<PackWork> PackFeed::next() {
  if (!shard_) return next_shard();
  PackWork work;
  work.shard = shard_;
  try {
    if (samples_ && next_sample(work)) return work;
  } catch (const Error& error) {  // the rest of the shard cannot be read
    work.errors.emplace_back(shard_->path, error, Cause::format);
  }
  work.end = true;
  if (samples_) {
    work.faults = samples_->faults();
    work.any_refused = samples_->any_refused();
  }
  samples_.reset();
  shard_.reset();
  kept_.reset();
  return work;
}

bool PackFeed::next_sample(PackWork& work) {
  shard::Sample sample;
  for (;;) {
    if (!samples_->next(sample)) return false;
    const std::string* json = duplicates_->empty() ? nullptr : sample.find("json");
    if (!json || !duplicates_->has_text(*json)) break;
  }
  try {
    work.split = split_of(sample, *shard_);
  } catch (const Error& error) {
    work.refusal = error.what();
  }
  if (work.refusal.empty()) take_name(*shard_, work.split);
  work.sample = std::move(sample);
  return true;
}

ClipShard PackFeed::parse(io::Record& record) {
  if (record.kind != "shard")
    fail("is a {}, not a shard; vfm-clip makes shards of videos", record.kind);
  ClipShard shard;
  shard.path = record.path();
  const auto split = get_string(record.json, "split");
  shard.split = split.value_or("train");
  shard.split_given = split.has_value();
  if (!is_folder_name(shard.split)) fail("its split '{}' cannot name a folder", shard.split);
  shard.name = output_name(shard.path);
  shard::complete_shard(record);
  shard.tars = io::column_tars(record);
  shard.record = std::move(record.json);
  if (!paths_.add(shard.path).second) fail_as(Cause::duplicate, "is in the input twice");
  return shard;
}

/// Throws Error if another shard has the name, because two shards must not write the same tar.
void PackFeed::take_name(const ClipShard& shard, const std::string& split) {
  const std::string name = split + "/" + shard.name;
  const auto [owner, is_new] =
      taken_.emplace(xxh3_64(name.data(), name.size()), paths_.find(shard.path).value());
  const std::string_view path = paths_.name(owner->second);
  // Different names may have equal hashes.
  if (path != shard.path && output_name(path) == shard.name)
    fail_as(Cause::duplicate, "its latents would replace those of '{}': rename one", path);
}

std::optional<PackWork> PackFeed::next_shard() {
  std::optional<io::Record> record = input_.next();
  PackWork work;
  work.errors = std::exchange(bad_, {});
  if (!record) return work.errors.empty() ? std::nullopt : std::optional(std::move(work));
  const std::string path = get_string(record->json, "path").value_or(record->where);
  try {
    shard_ = std::make_shared<const ClipShard>(parse(*record));
    kept_.emplace(shard_->tars);  // hashed and read
    duplicates_.emplace(shard_->record);
    const std::vector<std::string> splits = finished_(*shard_);
    for (const std::string& split : splits)
      take_name(*shard_, split);
    if (splits.empty()) {
      shard::check_shard_bytes({"shard", shard_->record, path});
      samples_ = std::make_unique<shard::JoinedReader>(shard_->tars, limits_);
    }
    work.shard = shard_;
    work.begin = true;
  } catch (const Error& error) {
    shard_.reset();
    kept_.reset();
    work.errors.emplace_back(path, error);
  }
  return work;
}

}  // namespace vfm::pack

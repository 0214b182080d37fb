// SPDX-License-Identifier: Apache-2.0
#include "jobs/pack_feed.h"

#include <filesystem>
#include <set>

#include "base/error.h"
#include "data/clips.h"
#include "io/file.h"

namespace vfm::jobs {
namespace {

bool is_directory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

/// A split names a folder.
bool is_folder_name(const std::string& name) {
  return shard::valid_key(name);
}

}  // namespace

PackFeed::PackFeed(const std::vector<std::string>& inputs,
                   std::function<bool(const ClipShard&)> wanted)
    : wanted_(std::move(wanted)) {
  std::vector<std::string> rest;
  for (const std::string& input : inputs) {
    if (!is_directory(input)) {
      rest.push_back(input);
      continue;
    }
    for (io::Record& record : data::dataset_records(input))
      listed_.push_back(std::move(record));
  }
  if (!rest.empty() || inputs.empty())
    reader_ = std::make_unique<io::ManifestReader>(
        rest, [this](const std::string& where, const std::string& message) {
          bad_.emplace_back(where, message);
        });
}

PackFeed::~PackFeed() = default;

std::optional<PackWork> PackFeed::next() {
  if (!shard_) return next_shard();
  PackWork work;
  work.shard = shard_;
  if (samples_) {
    shard::Sample sample;
    try {
      if (samples_->next(sample)) {
        work.sample = std::move(sample);
        return work;
      }
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      work.damage = error.what();  // what came before it is whole
    }
  }
  work.end = true;
  if (samples_)
    for (const std::string& key : samples_->repeated())
      work.errors.emplace_back(fmt::format("{} of '{}'", key, shard_->path), kRepeated);
  samples_.reset();
  shard_.reset();
  return work;
}

std::optional<io::Record> PackFeed::next_record() {
  if (next_listed_ < listed_.size()) return std::move(listed_[next_listed_++]);
  return reader_ ? reader_->next() : std::nullopt;
}

ClipShard PackFeed::parse(io::Record& record) {
  if (record.kind != "shard")
    fail("is a {}, not a shard; vfm-clip makes shards of videos", record.kind);
  ClipShard shard;
  shard.path = record.path();
  shard.split = get_string(record.json, "split").value_or("train");
  if (!is_folder_name(shard.split)) fail("its split '{}' cannot name a folder", shard.split);
  shard.name = io::stem(shard.path) + ".tar";
  complete_shard(record);
  shard.tars = io::column_tars(record);
  shard.record = std::move(record.json);
  const auto [other, is_new] = taken_.emplace(shard.split + "/" + shard.name, shard.path);
  if (!is_new && other->second == shard.path) fail("is in the input twice");
  if (!is_new) fail("its latents would replace those of '{}': rename one", other->second);
  return shard;
}

std::optional<PackWork> PackFeed::next_shard() {
  for (;;) {
    std::optional<io::Record> record = next_record();
    PackWork work;
    if (!record) {
      if (bad_.empty()) return std::nullopt;
      work.errors = std::exchange(bad_, {});
      return work;
    }
    const std::string path = get_string(record->json, "path").value_or(record->where);
    // `vfm-pack clips/*.tar` also names the columns beside the shards.
    if (record->kind == "shard" && !record->json.contains("columns") && is_column_tar(path))
      continue;
    work.errors = std::exchange(bad_, {});
    try {
      shard_ = std::make_shared<const ClipShard>(parse(*record));
      if (wanted_(*shard_)) {
        check_shard_bytes({"shard", shard_->record, path});
        samples_ = std::make_unique<JoinedReader>(shard_->tars);
      }
      work.shard = shard_;
      work.begin = true;
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      shard_.reset();
      work.errors.emplace_back(path, error.what());
    }
    return work;
  }
}

}  // namespace vfm::jobs

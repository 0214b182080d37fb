// SPDX-License-Identifier: Apache-2.0
#include "shard/shard_input.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/utf8.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "parts/part_inputs.h"
#include "shard/columns.h"
#include "shard/finished_dataset.h"

namespace vfm::shard {
namespace {

/// Names that are not UTF-8 are left to ManifestReader, which refuses them. A server is not asked
/// about names of files.
bool is_directory(const std::string& path) {
  constexpr std::string_view kFiles[] = {".tar", ".jsonl", ".ndjson", ".files", ".tgz",
                                         ".gz",  ".zst",   ".bz2",    ".xz",    ".lz4"};
  const auto ends = [&](std::string_view end) { return path.ends_with(end); };
  if (!is_utf8(path) || (io::is_remote(path) && std::ranges::any_of(kFiles, ends))) return false;
  return io::is_folder(path);
}

std::vector<std::string> without_folders(std::vector<std::string> arguments) {
  std::erase_if(arguments, is_directory);
  return arguments;
}

}  // namespace

ShardInput::ShardInput(const std::vector<std::string>& arguments, io::OnFault on_bad,
                       const std::vector<std::string>& before, ListedClips::Later later)
    : lines_(without_folders(arguments), std::move(on_bad)) {
  for (const std::string& argument : arguments) {
    if (!is_directory(argument)) continue;
    listed_.push_back(open_folder(argument, later));
    miss_parts(argument, before);
  }
}

ShardInput::ShardInput(const PartShards& part, const std::vector<std::string>& arguments,
                       io::OnFault on_bad, const std::vector<std::string>& before,
                       ListedClips::Later later)
    : ShardInput(part.clips.empty() ? arguments : std::vector<std::string>(), std::move(on_bad),
                 before, later) {
  part_ = part;
  for (const int number : part.clip_parts) {
    std::shared_ptr<ClipsOfPart> clips;
    listed_.push_back([part, number, clips]() mutable -> std::optional<io::Record> {
      if (!clips) clips = std::make_shared<ClipsOfPart>(part.clips, number);
      for (;;) {
        std::optional<io::Record> record = clips->next();
        if (!record || !part.later) return record;
        part.later->mark(*record);
        if (counts(*record)) return record;
      }
    });
  }
}

void ShardInput::miss_parts(const std::string& folder, const std::vector<std::string>& tools) {
  for (const std::string& tool : tools) {
    const auto inputs = parts::part_inputs(folder, tool);
    if (missing_.empty() && inputs && !inputs->missing.empty())
      missing_ = fmt::format("of vfm-{}, {}", tool, inputs->message(folder));
  }
}

ShardInput::Next ShardInput::open_folder(const std::string& folder, ListedClips::Later later) {
  if (!ListedClips::are_in(folder)) {
    const auto dataset = std::make_shared<DatasetRecords>(folder);
    return [dataset] { return dataset->next(); };
  }
  const auto clips = std::make_shared<ListedClips>(folder, std::string(), later);
  if (missing_.empty()) missing_ = clips->missing();
  return [clips] { return clips->next(); };
}

io::InputStreams ShardInput::streams() const {
  io::InputStreams streams = lines_.streams();
  if (!missing_.empty()) streams.miss(missing_);
  return streams;
}

std::optional<io::Record> ShardInput::next_listed() {
  for (; next_folder_ < listed_.size(); ++next_folder_)
    if (auto record = listed_[next_folder_]()) return record;
  return std::nullopt;
}

std::optional<io::Record> ShardInput::next() {
  for (;;) {
    std::optional<io::Record> record = next_listed();
    if (!record) record = lines_.next();
    if (record && part_ && part_->clips.empty() && !part_->has(*record)) continue;
    if (!record || record->kind != "shard" || record->json->contains("columns")) return record;
    const auto path = get_string(record->json, "path");
    if (!path || !is_column_tar(*path)) return record;
    log_info("'{}' is a column of another shard, and read with it", *path);
  }
}

}  // namespace vfm::shard

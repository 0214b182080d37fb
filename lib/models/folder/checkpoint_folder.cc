// SPDX-License-Identifier: Apache-2.0
#include "models/folder/checkpoint_folder.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/folder/lora_file.h"

namespace vfm::models {
namespace fs = std::filesystem;

std::map<std::string, std::string> parse_complete(std::string_view text, std::string_view what) {
  std::map<std::string, std::string> hashes;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line(text.substr(begin, end - begin));
    begin = end + 1;
    // 32 hex digits, two spaces, the name: as sha256sum and xxhsum write it.
    if (line.size() < 35 || line.compare(32, 2, "  ") != 0)
      fail("{} has a malformed line: '{}'", what, line.substr(0, 80));
    hashes[line.substr(34)] = line.substr(0, 32);
  }
  return hashes;
}

std::vector<CompleteFile> list_complete(const std::string& folder) {
  const std::string path = io::join_path(folder, "COMPLETE");
  if (!io::file_exists(path)) fail("checkpoint '{}' is not complete: it has no COMPLETE", folder);
  const auto hashes = parse_complete(io::read_file(path), "'" + path + "'");
  std::vector<CompleteFile> files;
  for (const auto& [name, hash] : hashes) {
    std::error_code error;
    const std::uint64_t bytes = fs::file_size(io::join_path(folder, name), error);
    if (error) fail("checkpoint '{}' is damaged: '{}' is missing", folder, name);
    files.push_back({name, hash, bytes});
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    if (entry.is_regular_file() && name != "COMPLETE" && !hashes.count(name))
      fail("checkpoint '{}' is damaged: COMPLETE does not list '{}'", folder, name);
  }
  return files;
}

void verify_file(const std::string& folder, const CompleteFile& file) {
  if (io::hash_file(io::join_path(folder, file.name)) != file.hash)
    fail("checkpoint '{}' is damaged: '{}' is not as it was written", folder, file.name);
}

bool is_checkpoint_name(std::string_view name) {
  constexpr std::string_view kStep = "step-";
  if (!name.starts_with(kStep) || name.size() == kStep.size()) return false;
  return std::ranges::all_of(name.substr(kStep.size()),
                             [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> list_checkpoints(const std::string& run) {
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(io::join_path(run, "checkpoints"), error))
    if (is_checkpoint_name(entry.path().filename().string()) && entry.is_directory())
      folders.push_back(entry.path().string());
  // Names hold the step with leading zeros, as long as eight digits are enough.
  std::ranges::sort(folders, {}, [](const std::string& f) { return std::pair(f.size(), f); });
  return folders;
}

void verify_checkpoint(const std::string& folder, int rank, int ranks) {
  std::vector<std::uint64_t> loads(static_cast<std::size_t>(ranks), 0);
  for (const CompleteFile& file : list_complete(folder)) {
    const auto least = std::ranges::min_element(loads);
    *least += file.bytes;
    if (least - loads.begin() == rank) verify_file(folder, file);
  }
}

std::string find_checkpoint(const std::string& path) {
  if (io::file_exists(io::join_path(path, "COMPLETE"))) return path;
  const std::vector<std::string> folders = list_checkpoints(path);
  if (folders.empty())
    fail_usage(
        "'{}' holds no checkpoint: give the -o folder of vfm-train, or one of its "
        "checkpoints/step-* folders",
        path);
  return folders.back();
}

std::string checkpoint_at(const std::string& path) {
  const auto has = [&](const char* name) { return io::file_exists(io::join_path(path, name)); };
  return has("COMPLETE") || has("checkpoints") ? find_checkpoint(path) : "";
}

std::string newest_of_run(const std::string& path) {
  if (io::file_exists(io::join_path(path, "COMPLETE"))) return {};
  const std::vector<std::string> folders = list_checkpoints(path);
  return folders.empty() ? "" : folders.back();
}

std::string train_json_name(const std::string& checkpoint) {
  return "'" + io::join_path(checkpoint, "train.json") + "'";
}

Json read_train_json(const std::string& checkpoint) {
  const std::string what = train_json_name(checkpoint);
  Json train = parse_json(io::read_file(io::join_path(checkpoint, "train.json")), what);
  if (!train.is_object()) fail("{} is not a JSON object", what);
  return train;
}

std::string lora_folder(const std::string& checkpoint) {
  return io::join_path(checkpoint, "lora");
}

bool has_adapters(const std::string& checkpoint) {
  return io::SafetensorsSet::exists(lora_folder(checkpoint), kLoraName);
}

}  // namespace vfm::models

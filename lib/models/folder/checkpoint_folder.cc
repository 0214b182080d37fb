// SPDX-License-Identifier: Apache-2.0
#include "models/folder/checkpoint_folder.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "io/at_once.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "io/safetensors.h"
#include "models/folder/lora_file.h"

namespace vfm::models {

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

namespace {

/// Folders of checkpoints in a bucket -> their files and the sizes of these.
using FilesOfCheckpoints = std::map<std::string, std::map<std::string, std::uint64_t>>;

struct KnownRun {
  std::string place;  // RUN/checkpoints
  FilesOfCheckpoints files;
};
std::mutex g_known_mutex;
std::optional<KnownRun> g_known_run;  // of HeldRun, guarded by g_known_mutex

/// Calls `use` with the files of a checkpoint of the run that this process holds. Returns false if
/// the run is another one.
template <class Use>
bool use_known(const std::string& folder, const Use& use) {
  const std::lock_guard lock(g_known_mutex);
  if (!g_known_run || g_known_run->place != io::dir_name(folder)) return false;
  use(g_known_run->files, io::base_name(folder));
  return true;
}

FilesOfCheckpoints list_bucket(const std::string& place) {
  FilesOfCheckpoints found;
  for (const io::FolderEntry& entry : io::files_below(place)) {
    const std::size_t slash = entry.name.find('/');
    const std::string name = entry.name.substr(0, slash);
    if (slash != std::string::npos && is_checkpoint_name(name))
      found[name][entry.name.substr(slash + 1)] = entry.bytes;
  }
  return found;
}

/// What is known, or one listing tells.
FilesOfCheckpoints checkpoints_in_bucket(const std::string& run) {
  const std::string place = io::join_path(run, "checkpoints");
  {
    const std::lock_guard lock(g_known_mutex);
    if (g_known_run && g_known_run->place == place) return g_known_run->files;
  }
  return list_bucket(place);
}

}  // namespace

HeldRun::HeldRun(const std::string& run) {
  if (!io::is_bucket(run)) return;
  const std::string place = io::join_path(run, "checkpoints");
  FilesOfCheckpoints files = list_bucket(place);
  const std::lock_guard lock(g_known_mutex);
  g_known_run = {place, std::move(files)};
}

HeldRun::~HeldRun() {
  const std::lock_guard lock(g_known_mutex);
  g_known_run.reset();
}

void HeldRun::wrote(const std::string& folder, const std::string& complete) {
  use_known(folder, [&](FilesOfCheckpoints& all, const std::string& name) {
    all[name] = {{"COMPLETE", complete.size()}};
    for (const auto& [file, hash] : parse_complete(complete, "COMPLETE"))
      all[name].emplace(file, 0);
  });
}

std::vector<CompleteFile> list_complete(const std::string& folder) {
  const std::string path = io::join_path(folder, "COMPLETE");
  if (!io::file_exists(path)) fail("checkpoint '{}' is not complete: it has no COMPLETE", folder);
  const auto hashes = parse_complete(io::read_file(path), "'" + path + "'");
  std::map<std::string, std::uint64_t> there;
  const bool known = use_known(folder, [&](const auto& all, const std::string& name) {
    if (const auto found = all.find(name); found != all.end()) there = found->second;
  });
  if (!known)
    for (const io::FolderEntry& entry : io::files_below(folder))
      there[entry.name] = entry.bytes;
  std::vector<CompleteFile> files;
  for (const auto& [name, hash] : hashes) {
    const auto found = there.find(name);
    if (found == there.end()) fail("checkpoint '{}' is damaged: '{}' is missing", folder, name);
    files.push_back({name, hash, found->second});
  }
  for (const auto& [name, bytes] : there)
    if (name != "COMPLETE" && !hashes.count(name))
      fail("checkpoint '{}' is damaged: COMPLETE does not list '{}'", folder, name);
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
  const std::string place = io::join_path(run, "checkpoints");
  if (io::is_bucket(run)) {
    for (const auto& [name, files] : checkpoints_in_bucket(run))
      if (files.contains("COMPLETE")) folders.push_back(io::join_path(place, name));
  } else {
    for (const io::FolderEntry& entry : io::entries(place))
      if (entry.folder && is_checkpoint_name(entry.name))
        folders.push_back(io::join_path(place, entry.name));
  }
  // Names hold the step with leading zeros, as long as eight digits are enough.
  std::ranges::sort(folders, {}, [](const std::string& f) { return std::pair(f.size(), f); });
  return folders;
}

void remove_checkpoint(const std::string& folder) {
  std::vector<std::string> files;
  const bool known = use_known(folder, [&](auto& all, const std::string& name) {
    for (const auto& [file, bytes] : all[name])
      files.push_back(file);
  });
  if (!known || !files.empty()) io::remove_file(io::join_path(folder, "COMPLETE"));
  if (!known) return io::remove_folder(folder);
  use_known(folder, [](auto& all, const std::string& name) { all[name].erase("COMPLETE"); });
  io::for_each_at_once(files.size(), io::kRequestsAtOnce, [&](std::size_t i) {
    if (files[i] != "COMPLETE") io::remove_file(io::join_path(folder, files[i]));
  });
  use_known(folder, [](auto& all, const std::string& name) { all.erase(name); });
}

void remove_unfinished_checkpoints(const std::string& run) {
  const std::string place = io::join_path(run, "checkpoints");
  if (io::is_bucket(run)) {
    for (const auto& [name, files] : checkpoints_in_bucket(run))
      if (!files.contains("COMPLETE")) remove_checkpoint(io::join_path(place, name));
    return;
  }
  for (const io::FolderEntry& entry : io::entries(place))
    if (entry.name.starts_with(".step-")) io::remove_folder(io::join_path(place, entry.name));
}

void verify_checkpoint(const std::string& folder, int rank, int ranks) {
  std::vector<std::uint64_t> loads(static_cast<std::size_t>(ranks), 0);
  std::vector<CompleteFile> own;
  for (const CompleteFile& file : list_complete(folder)) {
    const auto least = std::ranges::min_element(loads);
    *least += file.bytes;
    if (least - loads.begin() == rank) own.push_back(file);
  }
  io::for_each_at_once(own.size(), io::requests_at_once(folder),
                       [&](std::size_t i) { verify_file(folder, own[i]); });
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
  const auto has = [&](const char* name) { return io::path_exists(io::join_path(path, name)); };
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

std::string absolute_path_of(const std::string& path) {
  namespace fs = std::filesystem;
  if (io::is_remote(path)) return path.substr(0, path.find_last_not_of('/') + 1);
  const fs::path whole = fs::absolute(path).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).string();  // "model/" is "model"
}

std::string lora_folder(const std::string& checkpoint) {
  return io::join_path(checkpoint, "lora");
}

bool has_adapters(const std::string& checkpoint) {
  return io::SafetensorsSet::exists(lora_folder(checkpoint), kLoraName);
}

}  // namespace vfm::models

// SPDX-License-Identifier: Apache-2.0
#include "shard/dataset_card.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "shard/writer.h"

namespace vfm::shard {
namespace {

constexpr std::string_view kOurs = "---\n# Written by vfm";

std::string list_of(int depth, const std::string& type) {
  std::string text, indent = "    ";
  for (int i = 1; i < depth; ++i) {
    text += indent + "list:\n";
    indent += "  ";
  }
  return text + indent + "list: " + type + "\n";
}

/// Returns the feature of a member, or "" if its name does not show the type.
std::string feature(const std::string& member) {
  const std::string last = member.substr(member.rfind('.') + 1);
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), last) != names.end();
  };
  if (member == "latent.npy") return list_of(4, "float16");
  if (member == "codes.npy") return list_of(3, "int32");
  if (member == "text.npy" || member == "text.windows.npy" || member == "windows.npy")
    return list_of(2, "float16");
  if (member == "video.npy") return list_of(1, "float16");
  if (is({"mp4", "mkv", "avi", "webm", "mov", "m4v", "ts", "mpg", "mpeg"}))
    return "    dtype: video\n";
  if (is({"jpg", "jpeg", "png", "webp", "bmp", "gif", "tif", "tiff"})) return "    dtype: image\n";
  if (last == "json") return "    dtype: json\n";
  if (last == "txt") return "    dtype: string\n";
  return {};
}

/// Returns the features of a configuration. If one is unknown, returns "", and load_dataset()
/// guesses them.
std::string features(const CardConfig& config) {
  std::string text = "- config_name: " + yaml_quoted(config.name) + "\n  features:\n";
  for (const std::string& member : config.members) {
    const std::string type = feature(member);
    if (type.empty()) return {};
    text += "  - name: " + yaml_quoted(member) + "\n" + type;
  }
  for (const char* name : {"__key__", "__url__"})
    text += fmt::format("  - name: {}\n    dtype: string\n", name);
  return text;
}

/// load_dataset() takes only words as names of splits.
std::string word(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string front_matter(const std::string& tool, const std::vector<CardConfig>& configs) {
  std::string text = fmt::format("{}: {} writes this file again.\nconfigs:\n", kOurs, tool);
  std::string info;
  for (const CardConfig& config : configs) {
    text += "- config_name: " + yaml_quoted(config.name) + "\n";
    if (&config == &configs.front() && configs.size() > 1) text += "  default: true\n";
    text += "  data_files:\n";
    for (const auto& [split, paths] : config.files) {
      text += "  - split: " + yaml_quoted(word(split)) + "\n    path:\n";
      for (const std::string& path : paths)
        text += "    - " + yaml_quoted(path) + "\n";
    }
    info += features(config);
  }
  if (!info.empty()) text += "dataset_info:\n" + info;
  return text + "---\n";
}

}  // namespace

std::string yaml_quoted(const std::string& text) {
  return dump_json(Json(text));
}

void write_dataset_card(const std::string& directory, const std::string& tool,
                        const std::string& about, const std::vector<CardConfig>& configs) {
  const std::string path = io::join_path(directory, "README.md");
  if (io::file_exists(path) && !io::read_file(path).starts_with(kOurs)) {
    log_warning("'{}' is left as it is: {} did not write it", path, tool);
    return;
  }
  io::update_file(path, front_matter(tool, configs) + "\n" + about + "\n");
}

std::string numbered_glob(const std::string& path) {
  constexpr std::size_t kDigits = 6, kTail = kDigits + 4;
  std::string glob = path.substr(0, plain_tar_path(path).size() - kTail);
  for (std::size_t i = 0; i < kDigits; ++i)
    glob += "[0-9]";
  return glob + ".tar";
}

}  // namespace vfm::shard

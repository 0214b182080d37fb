// README.md of a folder of shards: a dataset card, by which Hugging Face's load_dataset(FOLDER)
// finds the shards of each split and the types of their members.
//
// Its YAML has "configs" (data files of each split) and "dataset_info" (a feature for each member,
// so that no reader has to guess types from the first samples). Format: "Dataset cards" and "Manual
// configuration" in the documentation of huggingface_hub and datasets.
// Thread-safety: one thread at a time on one folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace vfm::shard {

/// A group of shards that are loaded together.
struct CardConfig {
  std::string name;                  ///< "mp4"; the first of several is the default
  std::vector<std::string> members;  ///< extensions: all that some sample has
  /// split -> paths or globs, relative to the folder
  std::map<std::string, std::vector<std::string>> files;
};

/// Writes DIR/README.md, unless there is one that vfm did not write. Its text has `tool` and
/// `about`. Throws Error.
void write_dataset_card(const std::string& directory, const std::string& tool,
                        const std::string& about, const std::vector<CardConfig>& configs);

/// In double quotes, which means the same in YAML and in JSON.
std::string yaml_quoted(const std::string& text);

/// "a/b-000000.tar" -> "a/b-[0-9]...[0-9].tar": the numbered shards beside it, and none of their
/// columns.
std::string numbered_glob(const std::string& path);

}  // namespace vfm::shard

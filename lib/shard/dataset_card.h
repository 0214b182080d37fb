// Writes README.md of a folder of shards: a dataset card, from which Hugging Face's
// load_dataset(FOLDER) gets the shards of each split and the types of their members.
//
// The card's YAML has "configs" (data files of each split) and "dataset_info" (a feature for each
// member). Format: "Dataset cards" and "Manual configuration" in the documentation of
// huggingface_hub and datasets.
// Thread-safety: one thread at a time on one folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace vfm::shard {

/// A configuration of the card: a group of shards that are loaded together.
struct CardConfig {
  std::string name;                  ///< "mp4"; the first config is the default
  std::vector<std::string> members;  ///< all extensions that samples have
  /// split -> paths or globs, relative to the folder
  std::map<std::string, std::vector<std::string>> files;
};

/// Writes DIR/README.md, unless it exists and vfm did not write it. Its text includes `tool` and
/// `about`. Throws Error.
void write_dataset_card(const std::string& directory, const std::string& tool,
                        const std::string& about, const std::vector<CardConfig>& configs);

/// Returns `text` in double quotes, valid in YAML and in JSON.
std::string yaml_quoted(const std::string& text);

/// Returns "a/b-[0-9]...[0-9].tar" for "a/b-000000.tar": a glob of the numbered shards, without
/// columns.
std::string numbered_glob(const std::string& path);

}  // namespace vfm::shard

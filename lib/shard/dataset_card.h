// Writes README.md, the dataset card of a folder of shards. The card tells Hugging Face's
// load_dataset(FOLDER) which shards each split has, and the types of the members.
//
// Format: "Dataset cards" and "Manual configuration" in the documentation of huggingface_hub and
// datasets.
// Thread-safety: one thread at a time for each folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace vfm::shard {

/// A group of shards that are loaded together, called a config in the card.
struct CardConfig {
  std::string name;                  ///< Name of the config: "mp4". The first config is the
                                     ///< default.
  std::vector<std::string> members;  ///< All extensions of the samples' members.
  /// Paths or globs of the shards of each split, relative to the folder.
  std::map<std::string, std::vector<std::string>> files;
};

/// Writes DIR/README.md. Leaves an existing file alone if vfm did not write it. The card names the
/// `tool` that writes it, and ends with the text `about`. Throws Error.
void write_dataset_card(const std::string& directory, const std::string& tool,
                        const std::string& about, const std::vector<CardConfig>& configs);

/// Returns `text` in double quotes, valid in YAML and in JSON.
std::string yaml_quoted(const std::string& text);

/// Returns a glob of the numbered shards without their columns: "a/b-[0-9]...[0-9].tar" for
/// "a/b-000000.tar" and "a/b-000000.tar.zst".
std::string numbered_glob(const std::string& path);

}  // namespace vfm::shard

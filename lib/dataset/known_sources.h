// In which part of the split the sources of a dataset stand: DIR/sources.jsonl, a line a source.
//
// A run with other input than the one before reads it, so that no source changes its part: what was
// kept for validation is never trained on.
//   {"source":"0a1b...","path":"raw/a.mp4","split":"train"}
//   {"source":"000042","content":"5f0c...","split":"val"}
// "path" is there where the source is named by a hash, "content" where only a key names it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "dataset/scan.h"

namespace vfm::dataset {

class KnownSources {
 public:
  /// Reads the file. Throws Error if it cannot be read or a line is malformed.
  static KnownSources read(const std::string& path);

  bool empty() const { return by_name_.empty(); }
  /// The part of the item's source: by its name, or, for a video that was repaired and has another
  /// hash now, by its path. Nothing if neither is known.
  std::optional<std::string> split_of(const Item& item) const;
  /// Whether the item shows that its dataset is this one: its source was there. A key of somebody
  /// else's shard says little ("000042"), so there the contents must be the same.
  bool knows(const Item& item) const;
  void put(const Item& item, const std::string& split);
  /// The file's contents, sorted by source.
  std::string lines() const;

 private:
  struct Source {
    std::string path, content, split;
  };
  void add(const std::string& name, Source source);

  std::map<std::string, Source> by_name_;
  std::unordered_map<std::string, std::string> by_path_;  // split; "": several
};

}  // namespace vfm::dataset

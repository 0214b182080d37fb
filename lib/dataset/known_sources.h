// The file DIR/sources.jsonl. Each line has a source and the source's part of the split.
//
// A run with changed input reads the file, so that no source changes its part, and validation data
// never become training data.
//   {"source":"0a1b...","path":"raw/a.mp4","split":"train"}
//   {"source":"000042","content":"5f0c...","split":"val"}
// "path" is present if "source" is a hash. "content" is present if "source" is only a key.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/sorter.h"

namespace vfm::dataset {

struct KnownSource {
  std::string name, path, content, split;

  /// Returns the source's line in sources.jsonl.
  std::string line() const;
};

/// A table of all known sources, in temporary files, sorted by name and by path.
class KnownSources {
 public:
  /// Puts temporary files into `folder`.
  explicit KnownSources(const std::string& folder) : names_(folder), paths_(folder) {}
  /// Reads the file at `path`. Throws Error if the file cannot be read or a line is malformed.
  static KnownSources read(const std::string& path, const std::string& folder);

  void put(const KnownSource& source);
  bool empty() const { return names_.records() == 0; }

  /// An iterator over sources, sorted by name. If names are equal, visits only the source that was
  /// put last.
  class Names {
   public:
    explicit Names(KnownSources& known);
    /// Returns the current source, valid until pop(), or null at the end.
    const KnownSource* front() const { return front_ ? &*front_ : nullptr; }
    void pop();

   private:
    void read();
    io::Sorter::Stream stream_;
    std::optional<KnownSource> front_, after_;
  };

  /// Finds splits by path. find() must be called with paths in ascending order.
  class Paths {
   public:
    explicit Paths(KnownSources& known);
    /// Returns the split of `path`, an empty text if the path has several splits, or nullopt if the
    /// path is unknown.
    std::optional<std::string> find(const std::string& path);

   private:
    bool read();
    io::Sorter::Stream stream_;
    bool ended_ = false;
    std::string path_, split_;
    std::string found_path_, found_;
    bool found_any_ = false;
  };

 private:
  io::Sorter names_, paths_;
};

}  // namespace vfm::dataset

// A map from a key to the first name that came with it, for a hundred million keys in little
// memory.
//
// The first few thousand keys stay in memory. After these keys, SQLite keeps a table of the keys'
// 64-bit hashes in a temporary file, and another file has keys and names. Memory: some 16 MiB.
// ScratchFile::disk_bytes() counts the keys and names, but not the table. Thread-safety: one thread
// at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "io/scratch_file.h"

namespace vfm::io {

class FirstNames {
 public:
  static constexpr std::size_t kInMemory = 4096;

  /// Temporary files are made in `folder`, and unlinked at once. At most `in_memory` keys, at least
  /// 1, stay in memory.
  explicit FirstNames(std::string folder, std::size_t in_memory = kInMemory);
  ~FirstNames();
  FirstNames(FirstNames&&) noexcept;

  /// Returns the name that first came with `key`. If the key is new, keeps `name` and returns
  /// nothing. Throws Error; Stopped if the disk is full.
  std::optional<std::string> put(const std::string& key, const std::string& name);
  /// Returns the name that first came with `key`, or nothing if the key is new.
  std::optional<std::string> find(const std::string& key) const;

 private:
  struct Table;
  void to_disk();

  std::string folder_;
  std::size_t in_memory_;
  std::unordered_map<std::string, std::string> first_;
  std::unique_ptr<Table> table_;
};

}  // namespace vfm::io

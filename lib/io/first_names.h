// Which name came first with a key: of a hundred million, in little memory.
//
// The first few thousand are in memory; then a table of 64-bit hashes of the keys is SQLite's, on a
// temporary file, and keys and names stand on another one. SQLite, because this asks and adds in
// turns, in no order. Memory: some 16 MiB. ScratchFile::disk_bytes() counts the keys and names, but
// not the table. Thread-safety: one thread at a time.
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

  /// `folder`: of the temporary files, which are removed at once. `in_memory`: so many keys need
  /// none; at least 1.
  explicit FirstNames(std::string folder, std::size_t in_memory = kInMemory);
  ~FirstNames();
  FirstNames(FirstNames&&) noexcept;

  /// The name that came with `key` first; nothing if none did before: then it is `name`. Throws
  /// Error; Stopped where the disk is full.
  std::optional<std::string> put(const std::string& key, const std::string& name);
  /// The same, but the key is not added.
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

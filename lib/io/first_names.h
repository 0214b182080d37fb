// A map from a key to the first name that was put with the key, for up to a hundred million keys.
//
// The first few thousand keys are in memory. Later keys are in two temporary files. Memory: about
// 16 MiB. Thread-safety: one thread at a time.
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

  /// Makes temporary files in `folder`. Keeps at most `in_memory` keys in memory. `in_memory` must
  /// be at least 1.
  explicit FirstNames(std::string folder, std::size_t in_memory = kInMemory);
  ~FirstNames();
  FirstNames(FirstNames&&) noexcept;

  /// Returns the name that was first put with `key`. If the key is new, keeps `name` and returns
  /// nullopt. Throws Error. Throws Stopped if the disk is full.
  std::optional<std::string> put(const std::string& key, const std::string& name);
  /// Returns the name that was first put with `key`, or nullopt if the key is unknown.
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

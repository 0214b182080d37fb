// A file of records that grows, and that a run can do without for a while.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "io/file.h"

namespace vfm::train {

/// Appends records whole or not at all. What a full or failing disk refuses is kept, with a
/// warning, and appended before the next record. Thread-safety: any thread.
class WholeAppends {
 public:
  /// Takes a file that was opened with O_APPEND, and that nobody else writes.
  explicit WholeAppends(io::File file);

  void add(std::string_view record);
  /// Makes all records durable. Throws Error.
  void sync();

 private:
  void put();

  io::File file_;
  std::mutex mutex_;      // Guards the next three.
  std::uint64_t bytes_;   // of the file, in whole records
  std::string waiting_;   // records that are not in it
  bool refused_ = false;  // since the last record that was put
};

}  // namespace vfm::train

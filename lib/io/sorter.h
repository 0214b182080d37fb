// Sorts more records than fit into memory. Writes sorted runs to a temporary file, and merges the
// runs.
//
// A record is any sequence of bytes. Records are sorted in the order of memcmp, and a prefix comes
// before longer records. io/packed.h packs fields into such bytes. Thread-safety: one thread at a
// time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/scratch_file.h"

namespace vfm::io {

class Sorter {
 public:
  /// Default memory in bytes, for some hundred thousand records.
  static constexpr std::size_t kMemory = std::size_t{8} << 20;

  /// Uses `memory` bytes. If all records together take more than `memory`^2 / 2^16 bytes, uses up
  /// to seven times as many. Long records take more memory. Temporary files are in `folder`. If all
  /// records fit into memory, no file is made.
  explicit Sorter(std::string folder, std::size_t memory = kMemory);
  ~Sorter();
  Sorter(Sorter&&) noexcept;
  Sorter& operator=(Sorter&&) noexcept;

  /// Throws Error if the record is larger than a quarter of `memory`, or if park() or sorted() was
  /// already called.
  void add(std::string_view record);
  std::uint64_t records() const;

  /// Writes all records to disk, and frees the memory until sorted(). Call park() after the last
  /// add() if sorted() is not called soon.
  void park();

  class Stream;
  /// Returns all records in order. Each call begins at the first record. The Sorter must outlive
  /// the Stream.
  Stream sorted();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Sorter::Stream {
 public:
  ~Stream();
  Stream(Stream&&) noexcept;
  /// Sets `record` to the next record, valid until the next call. Returns false at the end. Throws
  /// Stopped.
  bool next(std::string_view& record);

 private:
  friend class Sorter;
  struct Merge;
  explicit Stream(std::unique_ptr<Merge> merge);
  std::unique_ptr<Merge> merge_;
};

}  // namespace vfm::io

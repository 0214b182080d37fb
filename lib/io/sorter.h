// Sorts more records than memory holds: sorted runs on a temporary file, which are then merged.
//
// A record is any bytes; the order is that of memcmp, with a prefix before longer records.
// io/packed.h makes such bytes from fields. Memory is the constructor's; long records take more
// while read, since each sorted run has its next record in memory. Libraries do not fit: SQLite's
// sorter chooses its own place for files; key-value stores (LMDB, RocksDB) keep an unneeded index;
// STXXL is unmaintained, and only has records of one size. Thread-safety: one thread at a time.
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
  /// Some hundred thousand records fill it. From some ten million on it grows, to 56 MiB, so that
  /// 10^8 records are merged in one pass.
  static constexpr std::size_t kMemory = std::size_t{8} << 20;

  /// `memory`: bytes, while records come and, if they are short, while they are read; up to seven
  /// times as many for records that take more than `memory`^2 / 2^16 bytes. Temporary files stand
  /// in `folder`; there is none as long as all fits into memory.
  explicit Sorter(std::string folder, std::size_t memory = kMemory);
  ~Sorter();
  Sorter(Sorter&&) noexcept;
  Sorter& operator=(Sorter&&) noexcept;

  /// Throws Error for a record that takes more than a quarter of memory, or if sorted() was called.
  void add(std::string_view record);
  std::uint64_t records() const;

  /// Writes all to disk and frees the memory until sorted(). Call it when no more records come and
  /// none is needed soon.
  void park();

  class Stream;
  /// All records in order; again from the first each time. The sorter must outlive it.
  Stream sorted();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Sorter::Stream {
 public:
  ~Stream();
  Stream(Stream&&) noexcept;
  /// The next record, valid until the next call. False at the end. Throws Stopped.
  bool next(std::string_view& record);

 private:
  friend class Sorter;
  struct Merge;
  explicit Stream(std::unique_ptr<Merge> merge);
  std::unique_ptr<Merge> merge_;
};

}  // namespace vfm::io

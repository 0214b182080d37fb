// Sorts more records than memory holds: sorted runs on a temporary file, which are then merged.
//
// A record is any bytes, and the order is that of memcmp, a shorter one before those that it
// begins: io/packed.h makes such bytes of fields. Memory is what the constructor says; of long
// records more while they are read, since each sorted run has its next record in memory. Why not a
// library: SQLite's sorter, which is at hand, puts its files where it likes; key-value stores
// (LMDB, RocksDB) keep an index that nobody asks here; STXXL is not looked after, and knows records
// of one size alone. Thread-safety: one thread at a time.
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
  /// Full from some hundred thousand records on. It grows from some ten millions on, to 56 MiB, so
  /// that 10^8 of them are merged in one pass.
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

  /// No more records come, and none is asked for soon: all go to the disk, and memory is free until
  /// sorted().
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

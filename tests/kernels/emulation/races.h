// Finds races in what the threads of a launch do to memory, whatever the order they happen to run
// in here.
//
// Two accesses of one byte are ordered
// - within a thread, but for copies (cp.async) between their beginning and the thread's waiting;
// - within a warp, by a __syncwarp() between them. A shuffle or a matrix product is none: they make
//   lanes wait for each other, but give no order to memory;
// - within a block, by a __syncthreads() between them;
// - never between blocks of a launch.
// Two atomics never race, nor two reads.
// Source: CUDA C++ Programming Guide, "Synchronization Functions", "Warp Shuffle Functions"; PTX
// ISA, "cp.async".
//
// For each byte its last write is kept, and two reads (or atomics) since: of different warps or
// blocks if there are such, else of different lanes. Any later write that races with some read
// races with one of them. A time is the number of barriers that opened before in its block.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace vfm::emulation {

enum class Access : std::uint8_t;

/// An access as it is remembered.
struct Mark {
  std::uint32_t block = 0;  ///< number of the block since the program began, from 1 on
  std::uint32_t time = 0;
  std::uint32_t place = 0;
  std::uint16_t thread = 0;
  Access access{};
};

/// What was done to a region of memory. Takes memory only where something was.
class Shadow {
 public:
  explicit Shadow(std::size_t bytes);

 private:
  friend class Races;
  struct Cell {
    Mark write, read, other_read;
  };
  struct Free {
    void operator()(Cell* cells) const;
  };
  using Cells = std::unique_ptr<Cell[], Free>;
  static Cells make(std::size_t count);
  void refine();

  std::size_t bytes_;
  unsigned shift_ = 2;  // a cell is 1 << shift_ bytes
  Cells cells_;
};

class Races {
 public:
  void launch_begins();
  void block_begins(unsigned threads);
  void block_synced();
  void warp_synced(unsigned warp);

  /// Notes an access, by a thread of the running block, of `bytes` from `at` on, and returns one
  /// that it races with. `shared`: each block has the memory to itself.
  std::optional<Mark> touch(Shadow& shadow, bool shared, std::size_t at, std::size_t bytes,
                            unsigned thread, Access access, std::uint32_t place);
  /// The number in its launch of a mark's block.
  std::uint32_t block_of(const Mark& mark) const { return mark.block - first_block_; }

 private:
  bool over(const Mark& mark) const;
  bool races(const Mark& mark, const Mark& now) const;
  const Mark* touch_cell(Shadow::Cell& cell, const Mark& now) const;
  void note_read(Shadow::Cell& cell, const Mark& now) const;

  std::uint32_t first_block_ = 1, block_ = 0;  // of the launch; the running one
  std::uint32_t time_ = 0, synced_ = 0;        // synced_: when the block last was
  std::vector<std::uint32_t> warps_synced_;    // or the warp, or its block
  std::uint32_t first_ = 0;                    // the first block that an access may race with
  std::uint32_t warp_synced_ = 0;              // of the thread that touches
};

}  // namespace vfm::emulation

// The layout of the file of share/pipe_board.h in memory.
//
// Only running programs of one build of vfm, on one machine, read this layout. The file's first
// bytes, kPipeWords, name the layout's version. Thread-safety: any thread, by atomic fields.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "share/pipe_board.h"
#include "share/shared_file.h"

namespace vfm::share {

inline constexpr std::size_t kPipeRecords = 63;
inline constexpr char kPipeWords[24] = "vfm: slots of a pipe, 3";

/// Total time of activities that have ended, and of `count` activities under way. The total at
/// `now` nanoseconds is sum + count * now, since add() subtracts start times from `sum`.
struct PipeTime {
  std::atomic<std::uint64_t> count, sum;
  void add(int by, std::uint64_t now) {
    const auto n = static_cast<std::uint64_t>(static_cast<std::int64_t>(by));
    count += n;
    sum -= n * now;
  }
  std::uint64_t at(std::uint64_t now) const { return sum + count * now; }
};

using PipeName = std::atomic<char>[32];

/// The record of one program. Other programs write only `gone`, `place`, `call_items`, `call_help`
/// and `passed_by`, and take the tokens of a killed program. No field needs a lock.
struct alignas(1024) PipeRecord {
  PipeName name, unit;
  std::atomic<std::int64_t> pid;
  std::atomic<std::uint64_t> input, output;  // Values of pipe_name(), or 0 without a pipe.
  std::atomic<std::uint64_t> joined, left;   // Nanoseconds of pipe_clock().
  std::atomic<std::uint32_t> used;           // Number of the record's program, 0 before the first.
  std::atomic<std::uint32_t> gone;           // Equals `used` if the program has ended.
  std::atomic<std::uint32_t> draws;
  std::atomic<std::uint32_t> version;  // Odd while the times change.
  std::atomic<std::int32_t> place, most, held;
  std::atomic<std::int32_t> tokens;                  // Tokens of make's jobserver.
  std::atomic<std::int32_t> items, help;             // Threads that wait for a slot.
  std::atomic<std::uint32_t> call_items, call_help;  // Futexes that wake waiting threads.
  std::atomic<std::uint32_t> passed_by;              // Whether others took the program's slots.
  std::atomic<std::int64_t> input_bytes;
  std::atomic<std::uint64_t> done;
  PipeTime input_waits, output_waits, slot_waits, busy;
};
static_assert(sizeof(PipeRecord) == 1024);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Stores `name`, cut to the size of `to`.
inline void set_pipe_name(PipeName& to, std::string_view name) {
  const std::size_t size = std::min(name.size(), std::size(to) - 1);
  for (std::size_t i = 0; i < std::size(to); ++i)
    to[i].store(i < size ? name[i] : '\0', std::memory_order_relaxed);
}
inline std::string pipe_name_text(const PipeName& from) {
  std::string name;
  for (std::size_t i = 0; i < std::size(from) && from[i] != '\0'; ++i)
    name += from[i];
  return name;
}

struct PipeFile {
  struct alignas(1024) Head : SharedHead {
    std::atomic<std::int32_t> slots;   // Value of PipeBoard::slots().
    std::atomic<std::uint32_t> takes;  // Number of slots that programs have taken so far.
    std::atomic<std::uint32_t> joins;  // Number that the latest program got when it joined.
    std::atomic<std::int32_t> lost;    // Number of jobserver tokens of killed programs.
  } head;
  PipeRecord records[kPipeRecords];
  /// For each slot, the number of the program that has it, or 0 if the slot is free.
  std::atomic<std::uint32_t> owners[PipeBoard::kMostSlots];
};
static_assert(sizeof(PipeFile) == 80 * 1024);

}  // namespace vfm::share

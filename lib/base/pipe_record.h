// The file of base/pipe_board.h as it is mapped into memory: its header and a record a program.
//
// Not a format for disks: programs of one build of vfm read it, on one machine, while they run. The
// words that say so stand at its beginning. Thread-safety: atomic fields, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace vfm {

inline constexpr std::size_t kPipeRecords = 63;
inline constexpr char kPipeWords[24] = "vfm: slots of a pipe, 1";

/// How long things have lasted together: count() of them go on, since moments that are in the sum.
/// At `now` nanoseconds that is sum + count * now.
struct PipeTime {
  std::atomic<std::uint64_t> count, sum;
  void add(int by, std::uint64_t now) {
    const auto n = static_cast<std::uint64_t>(static_cast<std::int64_t>(by));
    count += n;
    sum -= n * now;
  }
  std::uint64_t at(std::uint64_t now) const { return sum + count * now; }
};

/// Of one program. What is not atomic is written under the file's lock, all but the calls by the
/// program itself.
struct alignas(1024) PipeRecord {
  char name[32], unit[32];
  std::int64_t pid;
  std::uint64_t input, output;  // which pipes these are; 0: none
  std::uint64_t joined;         // nanoseconds of the monotonic clock
  std::atomic<std::uint64_t> left;
  std::atomic<std::uint32_t> used;  // a program has it, or had it: what follows holds
  std::atomic<std::uint32_t> gone;  // that program has ended
  std::atomic<std::uint32_t> draws;
  std::atomic<std::uint32_t> version;  // odd: times change
  std::atomic<std::int32_t> place, most, held;
  std::atomic<std::int32_t> tokens;                  // of make's
  std::atomic<std::int32_t> items, help;             // threads that wait for a slot
  std::atomic<std::uint32_t> call_items, call_help;  // futexes: to be looked at again
  std::atomic<std::int64_t> input_bytes;
  std::atomic<std::uint64_t> done;
  PipeTime input_waits, output_waits, slot_waits, busy;
};
static_assert(sizeof(PipeRecord) == 1024);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// As much of it as there is room for.
inline void set_pipe_name(char (&to)[32], std::string_view name) {
  std::memset(to, 0, sizeof to);
  std::memcpy(to, name.data(), std::min(name.size(), sizeof to - 1));
}

struct PipeFile {
  struct alignas(1024) Head {
    char words[24];
    std::atomic<std::int32_t> slots;   // as PipeBoard::slots()
    std::atomic<std::uint32_t> takes;  // of slots, by all programs
    std::atomic<std::int32_t> lost;    // make's tokens of programs that were killed
  } head;
  PipeRecord records[kPipeRecords];
};
static_assert(sizeof(PipeFile) == 64 * 1024);

}  // namespace vfm

// The layout of the file of share/gpu_board.h in memory.
//
// Only running programs of one build of vfm, on one machine, read this layout. The file's first
// bytes, kGpuWords, name the layout's version. The file's lock guards all fields except `takes` and
// the futexes. If a program is killed while it writes, each number has its old or its new value.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "share/gpu_averages.h"
#include "share/gpu_rule.h"
#include "share/shared_file.h"

namespace vfm::share {

inline constexpr std::size_t kGpuRecords = 63;
inline constexpr std::size_t kGpuName = 64, kGpuKinds = 3;
inline constexpr char kGpuWords[24] = "vfm: GPUs of a pipe, 5";

enum class GpuModel : std::uint8_t { none, loading, loaded, unloading };

/// The record of a program with a model, or of one kind of a program's sessions. Aligned to a page.
struct alignas(4096) GpuRecord {
  char stage[32];
  std::int64_t pid;
  std::uint64_t input, output;  // Values of pipe_name().
  std::int64_t memory;
  std::int32_t kind;
  std::uint32_t beside;
  std::int32_t place;      // Place in the pipe. Any program writes it.
  std::uint32_t used;      // Whether the record ever had a program.
  std::uint32_t gone;      // Whether the program has ended. Any program writes it.
  std::uint32_t finished;  // Whether no more items come.
  std::int32_t waiting;    // Number of items that wait for a GPU.
  std::atomic<std::uint32_t> call_items, call_keeper;  // Futexes that wake waiting threads.
  std::uint64_t left;                                  // Time in nanoseconds when the program left.
  // Times in seconds of gpu_clock().
  double joined, beat, waits_since, last_item;
  double load_seconds;  // Seconds of the latest load, or 0 before the first load.
  GpuSet may;           // GPUs that the program can use.
  GpuSet left_out;      // GPUs of `may` that failed.
  GpuSet wanted;        // GPUs that should have the model. Any program writes it.
  std::array<GpuModel, kMostGpus> model;
  std::array<std::int32_t, kMostGpus> items;  // Number of items or sessions in use.
  std::array<double, kMostGpus> since;        // Start of the item, or sum of the sessions' starts.
  std::array<double, kMostGpus> unwanted;     // Time when the GPU left `wanted`.
  GpuCounts counts;                           // Counters without items under way.
  GpuAverages averages;                       // Averages. Any program writes them.
};

struct GpuEntry {
  char name[kGpuName];
  std::int64_t memory;
  std::array<std::int32_t, kGpuKinds> sessions;  // Sessions for each GpuKind, 0 if not known.
};

struct GpuFile {
  struct alignas(4096) Head : SharedHead {
    std::int32_t gpus;
    /// How often programs took a GPU or sessions for an item, for each GpuKind.
    std::array<std::atomic<std::uint32_t>, kGpuKinds> takes;
    double looked, changed;  // Times of the latest plan and of the latest load.
    std::array<GpuEntry, kMostGpus> gpu;
  } head;
  GpuRecord records[kGpuRecords];
};
static_assert(sizeof(GpuRecord) == 8192);
static_assert(sizeof(GpuFile) == 64 * 8192);

}  // namespace vfm::share

// Describes in words how programs used shared GPUs between two readings. A reading is one call of
// GpuWatch::look() (share/gpu_states.h).
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "share/gpu_states.h"

namespace vfm::share {

/// A program's use of GPUs for one GpuKind between two readings.
struct GpuLook {
  GpuStageState state;  ///< State at the second reading.
  double busy = 0;      ///< Mean number of GPUs or sessions that items used.
  double short_of = 0;  ///< Share of the time in which any item waited for a GPU, 0 to 1.
};

/// Returns how the program `pid` used GPUs between the readings `before` and `after`, for each
/// GpuKind. If the program joined after `before`, the result includes all its work.
std::vector<GpuLook> gpus_between(const GpuStates& before, const GpuStates& after, double seconds,
                                  std::int64_t pid);

/// Returns a text without control characters: "2.9 of 3 GPUs, 4 waiting, GPU 'x' left out", or
/// "1.4 decode sessions".
std::string gpu_text(const GpuLook& look);

/// Returns whether items waited for a GPU most of the time.
bool waits_for_gpus(const GpuLook& look);
/// Returns whether more GPUs would make the program faster: its items wait, and all its GPUs are
/// busy.
bool is_short_of_gpus(const GpuLook& look);
/// Returns whether `busy`, the mean number of busy GPUs, is nearly `gpus`.
bool all_gpus_busy(double busy, int gpus);

/// Return headings and rows of two HTML tables: one of GPUs, and one of programs.
std::vector<std::string> gpu_columns();
std::vector<std::vector<std::string>> gpu_rows(const GpuStates& states);
std::vector<std::string> gpu_stage_columns();
std::vector<std::string> gpu_stage_row(const std::string& name, const GpuStageState& state,
                                       double seconds);

}  // namespace vfm::share

// The state of the GPUs that programs of a pipe share (share/gpu_board.h), for --progress and for
// the page of VFM_SHARE_REPORT.
//
// Reading the state changes only the records of programs that have died. Thread-safety: one thread
// at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace vfm::share {

struct GpuState {
  std::string name;
  std::int64_t memory = 0;  ///< Bytes that models and sessions may use.
  std::int64_t used = 0;    ///< Bytes that models and sessions use.
};

/// The state of one record of the board. A program may have several records.
struct GpuStageState {
  std::string stage, kind;  ///< Program and GpuKind: "vfm-embed", "compute".
  std::int64_t pid = 0;
  bool alive = false;
  int held = 0;                       ///< GPUs or sessions that items use now.
  int waiting = 0;                    ///< Items that wait for a GPU or session.
  bool lacks_memory = false;          ///< Whether items wait until a GPU has memory for the model.
  std::vector<std::string> loaded;    ///< Names of GPUs on which the model is loaded.
  std::vector<std::string> loading;   ///< Names of GPUs that load or unload the model.
  std::vector<std::string> left_out;  ///< Names of GPUs that failed.
  int gpus = 0;                       ///< Number of GPUs of the program, including failed GPUs.
  double busy_seconds = 0;            ///< Seconds in which GPUs had an item, summed over GPUs.
  double short_seconds = 0;           ///< Seconds in which at least one item waited for a GPU.
  std::int64_t items = 0;             ///< Number of finished items.
};

struct GpuStates {
  std::vector<GpuState> gpus;
  std::vector<GpuStageState> stages;  ///< Records in the order of the pipe.
};

class GpuMap;

class GpuWatch {
 public:
  explicit GpuWatch(std::string share);
  ~GpuWatch();
  /// Returns the state of all programs. Returns an empty state if no program of this VFM_SHARE uses
  /// GPUs, or if the file cannot be read.
  GpuStates look();

 private:
  const std::string share_;
  std::unique_ptr<GpuMap> map_;
};

}  // namespace vfm::share

// Signs that a training is worse than it need be, each in one line that names the cause and the key
// to change: of a run's timing, of a dry run and of a plan.
// Thread-safety: free functions, any thread; a SignWatch is of one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "tensor/tensor.h"

namespace vfm::train {

/// What they are told from; what is not known is left out.
struct Signs {
  double memory = 0;     ///< part of what is usable
  /// What would make that less (train/cost/less_memory.h).
  std::string less_memory = "lower 'data.tokens'";
  double mfu = 1;        ///< model FLOPs utilization
  double bubble = 0;     ///< part of a step in which a pipeline's stages wait
  double data_wait = 0;  ///< part of a step in which a rank waits for its batches
  double straggler = 1;  ///< what the busiest rank takes of what the mean does
  int slowest = -1;      ///< that rank; of what is predicted -1, as packs alone make it slow
  /// What takes most of the time that is not computing, and which part of a step: "tp", "cp", ...
  std::string exchange;
  double exchanged = 0;
};

inline constexpr double kFullMemory = 0.97, kLowMfu = 0.3, kLongBubble = 0.15, kLongDataWait = 0.1,
                        kSlowRank = 1.15;

struct Sign {
  std::string_view kind;  ///< "memory", "mfu", "bubble", "data", "straggler"
  std::string words;
};
std::vector<Sign> signs_of(const Signs& signs);
/// Of a line of timing.jsonl (train/report/metrics.h). What takes a moment alone is no sign: of
/// steps that take less than half a second only MFU and memory. `usable` bytes of memory; 0: not
/// known. On the CPU the peak is that of tensors alone, so a sign of it is one in any case.
Signs signs_of_timing(const Json& timing, double usable);
/// Of a layout of a plan (train/plan/plan.h), or of a dry run's step in the same form; and of the
/// seconds that reading a rank's samples takes meanwhile, 0: not known.
Signs signs_of_plan(const Json& layout, double usable, double read_seconds = 0);
/// Of a layout whose time is not known: of a rank's memory, the stages and chunks of its pipeline,
/// the microbatches that go through them, and what the rank with the fullest packs computes of what
/// the mean does.
Signs signs_of_shape(double memory, int pp, int vpp, double microbatches, double straggler);

/// Tells each kind of a run's signs once. The first line of timing has what happens only at first,
/// and says nothing. A machine may be busy with something else for a moment: what depends on time
/// is told when so many lines in a row have it.
class SignWatch {
 public:
  static constexpr int kLinesInARow = 3;
  /// `less_memory`: asked where memory is full.
  std::vector<std::string> news(const Json& timing, double usable,
                                const std::function<std::string()>& less_memory = {});

 private:
  std::set<std::string_view> told_;
  std::map<std::string_view, int> in_a_row_;  // lines, up to the last one
  bool begun_ = false;
};

}  // namespace vfm::train

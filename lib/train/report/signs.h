// Signs that training is slower or closer to full memory than it need be. Each is one line that
// names the cause and the key to change. They come from a run's timing, a dry run or a plan.
// Thread-safety: free functions, any thread; a SignWatch is of one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "tensor/tensor.h"

namespace vfm::train {

/// Values that signs are derived from; a value that is not known keeps its default.
struct Signs {
  double memory = 0;  ///< needed part of the usable memory
  /// Words that say how to need less memory (train/cost/less_memory.h).
  std::string less_memory = "lower 'data.tokens'";
  double mfu = 1;        ///< model FLOPs utilization
  double bubble = 0;     ///< part of a step in which a pipeline's stages wait
  double data_wait = 0;  ///< part of a step in which a rank waits for its batches
  double straggler = 1;  ///< busy time of the busiest rank / mean busy time of the ranks
  int slowest = -1;  ///< the busiest rank; -1 in a prediction, where only its packs make it slow
  std::string slowest_host;
  /// The kind of exchange that takes the largest part of a step ("tp", "cp", ...), and that part.
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
/// From a line of timing.jsonl (train/report/metrics.h). Steps of less than half a second give only
/// MFU and memory, as their other values vary by chance. `usable` is in bytes of memory, 0 if not
/// known. On the CPU the peak of memory counts tensors only, so the actual use is higher.
Signs signs_of_timing(const Json& timing, double usable);
/// From a layout of a plan (train/plan/plan.h), or a dry run's step in the same form.
/// `read_seconds` is the time to read a rank's samples of the step, 0 if not known.
Signs signs_of_plan(const Json& layout, double usable, double read_seconds = 0);
/// From a layout whose time is not known. `memory` is the part of the usable memory that a rank
/// needs. The pipeline has `pp` stages with `vpp` chunks each, and `microbatches` go through it.
/// `straggler` is the work of the rank with the fullest packs / mean work.
Signs signs_of_shape(double memory, int pp, int vpp, double microbatches, double straggler);

/// Reports each kind of a run's signs once, and again if it comes back after kLinesWithout lines
/// without it. The first line of timing is ignored, as it has work that happens only once. A
/// machine may be busy with something else for a moment: signs that depend on time are reported
/// when kLinesInARow lines in a row have them.
class SignWatch {
 public:
  static constexpr int kLinesInARow = 3, kLinesWithout = 10;
  /// `less_memory` is called if memory is full, for Signs::less_memory.
  std::vector<std::string> news(const Json& timing, double usable,
                                const std::function<std::string()>& less_memory = {});

 private:
  std::map<std::string_view, int> told_;      // lines since a line had it
  std::map<std::string_view, int> in_a_row_;  // lines in a row, up to the last line
  bool begun_ = false;
};

}  // namespace vfm::train

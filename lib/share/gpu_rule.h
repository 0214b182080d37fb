// Two rules for programs that share GPUs (share/gpu_board.h). One rule decides on which GPUs each
// stage of a pipe has its model loaded. The other rule decides which item gets a free GPU.
//
// The rule for items: a stage can get a free GPU if the stage's model is loaded on the GPU and the
// stage has waiting items. Of several such stages, the stage nearest to the end of the pipe gets
// the GPU.
//
// The rule for models: the work of a stage is the time that its GPUs are busy for one unit that
// flows through the pipe. The work of all stages determines the rate of each placement of models on
// GPUs. Models move to the placement with the highest rate, if the move gains more than loading
// costs. The memory of each GPU limits the placements.
//
// If the reader of a stage is slow, the stage's results pile up, and the stage seems to need more
// GPUs than it does. Therefore the stage's work is multiplied by the share of its results that
// reach the end of the pipe: the product of GpuStage::passes over the stage and all later stages of
// the pipe.
//
// The rate of a placement follows from Gale's theorem on supplies and demands (Pacific J. Math. 7,
// 1957). A stage s needs w(s) GPUs for one unit a second. For a set Q of stages, divide the number
// of GPUs with a model of Q by the sum of w(s) over Q. The rate is the smallest of these quotients
// over all sets Q. With more than 6 stages, only some sets are tried.
//
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vfm::share {

constexpr int kMostGpus = 64;
/// A set of GPUs: bit i is GPU i.
using GpuSet = std::uint64_t;
constexpr GpuSet gpu_bit(int gpu) {
  return GpuSet{1} << gpu;
}

/// The input of plan_gpus() for one stage.
struct GpuStage {
  int place = 0;            ///< Position in the pipe. Later stages have greater numbers.
  int next = -1;            ///< Index of the stage that reads this stage's output, or -1.
  double passes = 1;        ///< Of the results that became ready lately, the share handed on.
  std::int64_t memory = 0;  ///< Bytes of the stage's model.
  int waiting = 0;          ///< Items that wait for a GPU now.
  double work = 0;          ///< Mean number of GPUs that the stage kept busy lately.
  double error = 0;         ///< Relative uncertainty of `work`, 0 to 1.
  double short_of = 0;      ///< Share of the time in which any item waited for a GPU, 0 to 1.
  bool known = false;       ///< Whether the stage has ever had a GPU.
  double idle = 0;          ///< Seconds since the latest item ended, or since the stage joined.
  double load_seconds = 0;  ///< Seconds that a load of the model takes.
  GpuSet may = 0;           ///< GPUs that the stage can use.
  GpuSet loaded = 0;        ///< GPUs on which the model is loaded or loading.
  GpuSet fixed = 0;         ///< GPUs of `loaded` that must keep the model now.
};

/// One GPU, in the input of plan_gpus() and gpu_for_item().
struct GpuPlace {
  std::int64_t free = 0;  ///< Bytes that models may use. Loaded models use some of these bytes.
  int sessions = 0;       ///< Free sessions. An item gets the GPU with the most free sessions.
};

/// Returns, for each stage, the GPUs on which its model should be loaded. If no model should move,
/// returns the present GPUs. Each element of `spans` has all stages, with averages over one time
/// span. The shortest span comes first. Each span gives a plan. A plan counts only if it moves a
/// model, and if the averages of no shorter span speak against it. Returns the first such plan. If
/// a span has enough data and shows a shortage of GPUs, longer spans are not used. `lasted` is the
/// number of seconds since the latest load of a model.
std::vector<GpuSet> plan_gpus(std::span<const std::vector<GpuStage>> spans,
                              std::span<const GpuPlace> gpus, double lasted);

/// The input of gpu_for_item() for one stage.
struct GpuClaim {
  int place = 0;  ///< Position in the pipe, as GpuStage::place.
  int waiting = 0;
  GpuSet ready = 0;  ///< GPUs on which the model is loaded and stays loaded.
};

/// Returns the GPU of `free` (GPUs without an item) that an item of stage `own` gets, or -1 if
/// the item gets no GPU. Sets `left` to whether another stage should get a free GPU.
int gpu_for_item(std::span<const GpuClaim> claims, std::size_t own, GpuSet free,
                 std::span<const GpuPlace> gpus, bool* left = nullptr);

}  // namespace vfm::share

// Averages of how busy the stages of a pipe were lately, the input of share/gpu_rule.h.
//
// GpuBoard (share/gpu_board.h) keeps the averages in its file. Thread-safety: any thread; only
// one thread at a time may use an object.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "share/gpu_rule.h"

namespace vfm::share {

/// Counters of one stage since the stage joined the board. Seconds include the item under way.
struct GpuCounts {
  std::array<double, kMostGpus> busy{};    ///< Seconds with an item, for each GPU.
  std::array<double, kMostGpus> items{};   ///< Number of finished items, for each GPU.
  double short_of = 0;                     ///< Seconds in which at least one item waited for a GPU.
  double ready = 0, handed = 0;            ///< Numbers of results, as in OrderedFlow.
  /// Sum of d^2 / 2, where d is the difference between the seconds of two successive items. The sum
  /// estimates the variance of the seconds.
  double squares = 0;
  double last = 0;  ///< Seconds that the latest finished item took, or 0 before the first.

  /// Adds the time of a finished item to `squares`, and sets `last` to this time.
  void count_length(double seconds);
};

/// The averages of one stage, all zero at the start. Programs share the object in a file.
struct GpuAverages {
  static constexpr int kSpans = 3;
  /// Time constants in seconds: after this time, the weight of an old value has fallen to 1/e.
  static constexpr std::array<double, kSpans> kRemembered = {1, 6, 24};

  GpuCounts seen;                        ///< Counters at the latest add().
  std::array<GpuCounts, kSpans> mean;    ///< Weighted sums. Older counts weigh less.
  std::array<double, kSpans> seconds{};  ///< Weighted seconds that each sum covers.

  /// Adds the counters `now`, read `passed` seconds after the previous call.
  void add(const GpuCounts& now, double passed);
  /// Sets `work`, `short_of`, `passes` and `error` of `stage` from the averages over
  /// kRemembered[span] seconds.
  void tell(int span, GpuStage& stage) const;
};

/// Multiplies the work of each stage by GpuStage::passes of this stage and of all later stages of
/// the pipe, and calls plan_gpus() (share/gpu_rule.h). `averages` has one element for each of
/// `stages`.
std::vector<GpuSet> plan_by_averages(std::span<GpuStage> stages,
                                     std::span<const GpuAverages* const> averages,
                                     std::span<const GpuPlace> gpus, double lasted);

}  // namespace vfm::share

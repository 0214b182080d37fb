// The time of each CPU kernel, from steps whose kernels were counted on Device::meta and timed on
// the CPU (tensor/kernel_log.h).
//
// The model is linear: a constant for start-up and losses on small tensors, a time for each
// operation and for each byte, and a further time for each byte beyond the caches, whose size is
// one of a few. The coefficients are fitted by least squares of the relative error, each call
// weighted by its time, none below zero. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/gpu_table.h"
#include "tensor/kernel_log.h"

namespace vfm::train {

/// Equal calls of one kernel.
struct AlikeCalls {
  double flops = 0, bytes = 0;
  double seconds = 0;  ///< mean of one call
  double calls = 0;
};

/// Throws Error if `calls` is empty. `caches`: fit the term of bytes beyond the caches.
models::KernelRate fit_rate(const std::vector<AlikeCalls>& calls, bool caches = true);

class KernelTimes {
 public:
  using Entries = std::vector<KernelLog::Entry>;

  /// Adds a step: as counted, and as timed any number of times. The time of a call is the first
  /// quartile of its times. Disturbances only add to a time, but the shortest of many times is not
  /// typical either. The k-th call of a name in `counted` is the k-th in `timed`. A kernel that the
  /// CPU runs within another kernel has time 0. If the CPU makes fewer copies than Device::meta
  /// counts, they share their time by their bytes. Throws Error if the CPU called a kernel that
  /// computes products more or less often than counted. Returns the sum of the times, which is less
  /// than a disturbed step takes.
  double add(const Entries& counted, const std::vector<Entries>& timed);

  std::vector<models::KernelRate> rates() const;
  enum class Pass { both, forward, backward };
  /// All calls of kernels of a kind; with Pass::forward or backward only those of that pass, by
  /// name.
  std::vector<AlikeCalls> calls_of(WorkKind kind, DType type, Pass pass = Pass::both) const;

 private:
  using Key = std::pair<std::string, DType>;
  std::map<Key, std::map<std::pair<double, double>, AlikeCalls>> calls_;
  std::map<Key, WorkKind> kinds_;
};

}  // namespace vfm::train

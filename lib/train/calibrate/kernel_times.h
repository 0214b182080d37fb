// How long each kernel of the CPU takes, from steps whose kernels were counted on Device::meta and
// timed on the CPU (tensor/kernel_log.h).
//
// A kernel's time is taken to be linear in what it counts: a constant, for starting and for what
// small tensors lose, a time for each operation and byte, and one more for bytes beyond what caches
// hold, of which there are some sizes to choose from. Fitted are they by least squares of the
// relative error, each call by the time that it takes, none below zero.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/gpu_table.h"
#include "tensor/kernel_log.h"

namespace vfm::train {

/// Calls of one kernel that are alike.
struct AlikeCalls {
  double flops = 0, bytes = 0;
  double seconds = 0;  ///< of one, the mean
  double calls = 0;
};

/// Throws Error for none. `caches`: with the term of bytes beyond them.
models::KernelRate fit_rate(const std::vector<AlikeCalls>& calls, bool caches = true);

class KernelTimes {
 public:
  using Entries = std::vector<KernelLog::Entry>;

  /// A step as it was counted, and timed as often as one likes; of each kernel's times that is
  /// taken which three quarters of them are not below: what else goes on only adds to a time, and
  /// the shortest of many is rarer than a step's usual ones. The k-th call of a name is the k-th of
  /// both. A kernel that the CPU does within another one has no time of its own. What is copied, on
  /// Device::meta also where the CPU uses it where it is, has a time by its bytes. Throws Error if
  /// the CPU called one that computes products more or less often than is counted. Gives the sum of
  /// these times: less than any step takes where something disturbs now this kernel and now that.
  double add(const Entries& counted, const std::vector<Entries>& timed);

  std::vector<models::KernelRate> rates() const;
  enum class Pass { both, forward, backward };
  /// All calls of kernels of a kind, of those whose names say so of one pass alone.
  std::vector<AlikeCalls> calls_of(WorkKind kind, DType type, Pass pass = Pass::both) const;

 private:
  using Key = std::pair<std::string, DType>;
  std::map<Key, std::map<std::pair<double, double>, AlikeCalls>> calls_;
  std::map<Key, WorkKind> kinds_;
};

}  // namespace vfm::train

// The kernels of this thread in the order in which they run: how long each takes on the CPU, or on
// Device::meta what each would do.
//
// The same program on both gives the same kernels in the same order, so that one can be told from
// the other: this machine is measured so (train/calibrate/). Of a kernel that calls others the
// outer one counts.
// Thread-safety: a log belongs to the thread that made it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <vector>

#include "tensor/meta.h"

namespace vfm {

class KernelLog {
 public:
  struct Entry {
    KernelCall call;     ///< on the CPU its name alone
    double seconds = 0;  ///< on the CPU
  };

  /// From now on notes what this thread runs, in place of a log that is there, until it is gone.
  KernelLog();
  ~KernelLog();
  KernelLog(const KernelLog&) = delete;
  KernelLog& operator=(const KernelLog&) = delete;

  const std::vector<Entry>& entries() const { return entries_; }

  /// That of this thread, or null.
  static KernelLog* current();

 private:
  friend class KernelTimer;
  friend void note_work(const char* name, const Work& work);

  std::vector<Entry> entries_;
  bool inside_ = false;  // a kernel
  KernelLog* const outer_;
};

/// Around a kernel on the CPU. Without a log it does nothing.
class KernelTimer {
 public:
  explicit KernelTimer(const char* name) : log_(KernelLog::current()) {
    if (log_ != nullptr) begin(name);
  }
  ~KernelTimer() {
    if (log_ != nullptr) end();
  }
  KernelTimer(const KernelTimer&) = delete;
  KernelTimer& operator=(const KernelTimer&) = delete;

 private:
  void begin(const char* name);
  void end();

  KernelLog* log_;
  const char* name_ = nullptr;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace vfm

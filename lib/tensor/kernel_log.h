// A log of the kernels of this thread in the order in which they run. On the CPU it has the time of
// each kernel, on Device::meta the work that the kernel would do.
//
// The same program gives the same kernels in the same order on both, so that times and work can be
// matched: train/calibrate/ measures a machine that way. If a kernel calls other kernels, only the
// outer kernel is logged.
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
    KernelCall call;     ///< on the CPU only the name
    double seconds = 0;  ///< on the CPU; 0 on Device::meta
  };

  /// Logs what this thread runs until the log is destroyed. Takes the place of an older log
  /// meanwhile.
  KernelLog();
  ~KernelLog();
  KernelLog(const KernelLog&) = delete;
  KernelLog& operator=(const KernelLog&) = delete;

  const std::vector<Entry>& entries() const { return entries_; }

  /// The log of this thread; null if there is none.
  static KernelLog* current();

 private:
  friend class KernelTimer;
  friend void note_work(const char* name, const Work& work);

  std::vector<Entry> entries_;
  bool inside_ = false;  // inside a kernel
  KernelLog* const outer_;
};

/// Times a kernel on the CPU. Does nothing without a log.
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

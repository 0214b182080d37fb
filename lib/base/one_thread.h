// Limits OpenMP to one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <omp.h>

namespace vfm {

/// Limits the parallel regions of the calling thread to one thread, for a scope. So results do not
/// depend on the number of threads.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace vfm

// Work on several things at once, each on one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <omp.h>

namespace vfm {

/// Limits the parallel regions that the calling thread opens in a scope to one OpenMP thread. So
/// results do not depend on the number of threads.
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

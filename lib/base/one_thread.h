// Work on several things at once, each on one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <omp.h>

namespace vfm {

/// One OpenMP thread for the parallel regions that the calling thread opens, until the end of a
/// scope. So what is computed does not depend on how many threads there are.
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

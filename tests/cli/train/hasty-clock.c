// Preloaded into a program: a second more has passed at each look at the monotonic clock, so that minutes go by within a
// short run.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec* now) {
  static long looks;
  const int result =
      ((int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime"))(clock, now);
  if (clock == CLOCK_MONOTONIC) now->tv_sec += __atomic_add_fetch(&looks, 1, __ATOMIC_SEQ_CST);
  return result;
}

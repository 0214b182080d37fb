// Preloaded into a program: the clock of this machine is an hour behind.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result =
      ((int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime"))(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec -= 3600;
  return result;
}

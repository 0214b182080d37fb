// Preloaded into a program, it holds what the program writes to files to $SLOW_DISK bytes a second.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef ssize_t write_function(int, const void*, size_t);

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

ssize_t write(int fd, const void* data, size_t bytes) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static write_function* real;
  static double free_at, rate;  // of the disk, which does one thing after the other
  struct stat facts;
  pthread_mutex_lock(&mutex);
  if (!real) {
    real = (write_function*)dlsym(RTLD_NEXT, "write");
    const char* given = getenv("SLOW_DISK");
    rate = given ? atof(given) : 0;
  }
  pthread_mutex_unlock(&mutex);
  const ssize_t put = real(fd, data, bytes);
  if (put <= 0 || rate <= 0 || fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) return put;
  pthread_mutex_lock(&mutex);
  const double begin = now();
  free_at = (free_at > begin ? free_at : begin) + (double)put / rate;
  const double wait = free_at - begin;
  pthread_mutex_unlock(&mutex);
  struct timespec pause = {(time_t)wait, (long)(1e9 * (wait - (double)(time_t)wait))};
  nanosleep(&pause, NULL);
  return put;
}

// Preloaded into a program, it is a mount that hangs: once the file $HANG_WHEN is there, a write to
// a file whose path has $HANG in it never returns, nor does closing the file.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void hang(int fd) {
  const char *part = getenv("HANG"), *when = getenv("HANG_WHEN");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0 || !part || !when) return;
  path[size] = 0;
  if (!strstr(path, part)) return;
  while (access(when, F_OK) == 0)
    usleep(100000);
}

ssize_t write(int fd, const void* data, size_t bytes) {
  hang(fd);
  return ((ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write"))(fd, data, bytes);
}
int close(int fd) {
  hang(fd);
  return ((int (*)(int))dlsym(RTLD_NEXT, "close"))(fd);
}

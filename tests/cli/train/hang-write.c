// Preloaded into a program, it is a mount that hangs: as long as the file $HANG_WHEN is there, a
// write to a file whose path has $HANG in it does not return, nor does closing the file. So with
// $HANG_TOO_WHEN and $HANG_TOO. A write to a file whose path has $FULL in it finds a full disk.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int has(int fd, const char* part) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = part ? readlink(link, path, sizeof path - 1) : -1;
  if (size < 0) return 0;
  path[size] = 0;
  return strstr(path, part) != NULL;
}

static void hang_while(const char* when, int fd, const char* part) {
  if (!when || !has(fd, part)) return;
  while (access(when, F_OK) == 0)
    usleep(100000);
}

static void hang(int fd) {
  hang_while(getenv("HANG_WHEN"), fd, getenv("HANG"));
  hang_while(getenv("HANG_TOO_WHEN"), fd, getenv("HANG_TOO"));
}

ssize_t write(int fd, const void* data, size_t bytes) {
  hang(fd);
  if (has(fd, getenv("FULL"))) {
    errno = ENOSPC;
    return -1;
  }
  return ((ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write"))(fd, data, bytes);
}
int close(int fd) {
  hang(fd);
  return ((int (*)(int))dlsym(RTLD_NEXT, "close"))(fd);
}

// Preloaded into a program, it is a disk that fails: of a file whose path ends in $BAD_FILE, opened
// for the $BAD_OPEN-th time or later, nothing behind byte $BAD_AFTER can be read (EIO).
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 4096 };
static char is_bad[MOST];

static int note(int fd, const char* path) {
  static int opened;
  const char* file = getenv("BAD_FILE");
  const size_t size = strlen(path), end = file ? strlen(file) : 0;
  if (fd < 0 || fd >= MOST) return fd;
  is_bad[fd] = file && size >= end && strcmp(path + size - end, file) == 0 &&
               __atomic_add_fetch(&opened, 1, __ATOMIC_SEQ_CST) >= atoi(getenv("BAD_OPEN"));
  return fd;
}

#define WATCH(name)                                                                           \
  int name(const char* path, int flags, ...) {                                                \
    va_list more;                                                                             \
    va_start(more, flags);                                                                    \
    const int mode = va_arg(more, int);                                                       \
    va_end(more);                                                                             \
    return note(((int (*)(const char*, int, ...))dlsym(RTLD_NEXT, #name))(path, flags, mode), \
                path);                                                                        \
  }
WATCH(open)
WATCH(open64)

// Returns how many of `size` bytes at `at` can be read, or -1.
static ssize_t readable(int fd, size_t size, off_t at) {
  if (fd < 0 || fd >= MOST || !is_bad[fd]) return size;
  const off_t left = atol(getenv("BAD_AFTER")) - at;
  if (left <= 0) errno = EIO;
  return left <= 0 ? -1 : left < (off_t)size ? left : (ssize_t)size;
}

ssize_t read(int fd, void* to, size_t size) {
  const ssize_t some =
      readable(fd, size, fd < MOST && fd >= 0 && is_bad[fd] ? lseek(fd, 0, SEEK_CUR) : 0);
  return some < 0 ? some : ((ssize_t(*)(int, void*, size_t))dlsym(RTLD_NEXT, "read"))(fd, to, some);
}
#define WATCH_AT(name)                                                                            \
  ssize_t name(int fd, void* to, size_t size, off_t at) {                                         \
    const ssize_t some = readable(fd, size, at);                                                  \
    return some < 0 ? some                                                                        \
                    : ((ssize_t(*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, #name))(fd, to,    \
                                                                                       some, at); \
  }
WATCH_AT(pread)
WATCH_AT(pread64)
int close(int fd) {
  if (fd >= 0 && fd < MOST) is_bad[fd] = 0;
  return ((int (*)(int))dlsym(RTLD_NEXT, "close"))(fd);
}

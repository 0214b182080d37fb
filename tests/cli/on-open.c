// Preloaded into a program, it changes what lies in the file system between two looks of the
// program: before the program opens, for the $ON_OPEN_AT-th time, a file whose path has $ON_OPEN in
// it, the shell does $ON_OPEN_DO. With $ON_REMOVE or $ON_UNLINK instead, before it removes such a file by
// remove() or unlink().
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef int open_function(const char*, int, ...);

static void look(const char* path, const char* event) {
  static int opened;
  const char* part = getenv(event);
  if (!part || !strstr(path, part)) return;
  if (__atomic_add_fetch(&opened, 1, __ATOMIC_SEQ_CST) != atoi(getenv("ON_OPEN_AT"))) return;
  char* command = strdup(getenv("ON_OPEN_DO"));
  unsetenv("LD_PRELOAD");  // the shell opens what it likes
  if (system(command) != 0) abort();
  free(command);
}

#define WATCH(name)                                                      \
  int name(const char* path, int flags, ...) {                           \
    va_list more;                                                        \
    va_start(more, flags);                                               \
    const int mode = va_arg(more, int);                                  \
    va_end(more);                                                        \
    look(path, "ON_OPEN");                                               \
    return ((open_function*)dlsym(RTLD_NEXT, #name))(path, flags, mode); \
  }
WATCH(open)
WATCH(open64)
int unlink(const char* path) {
  look(path, "ON_UNLINK");
  return ((int (*)(const char*))dlsym(RTLD_NEXT, "unlink"))(path);
}
int remove(const char* path) {
  look(path, "ON_REMOVE");
  return ((int (*)(const char*))dlsym(RTLD_NEXT, "remove"))(path);
}

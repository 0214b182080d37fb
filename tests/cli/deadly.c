// Preloaded into a program with workers, it kills each of its workers (which are the program,
// started with --serve-gpu) as it begins to wait for the $DIES_AT-th thing that it is told: the
// 1st is what to open, the 2nd a request.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int left = -1;

__attribute__((constructor)) static void begin(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "--serve-gpu") == 0) left = atoi(getenv("DIES_AT"));
}

ssize_t recvmsg(int socket, struct msghdr* message, int flags) {
  if (left > 0 && --left == 0) raise(SIGKILL);
  return ((ssize_t(*)(int, struct msghdr*, int))dlsym(RTLD_NEXT, "recvmsg"))(socket, message,
                                                                             flags);
}

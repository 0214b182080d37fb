// SPDX-License-Identifier: Apache-2.0
#include "media/isolate/confine.h"

#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

namespace vfm::media {
namespace {

struct Release {
  void operator()(scmp_filter_ctx filter) const { seccomp_release(filter); }
};

// Calls for memory, threads and their locks, time, and open descriptors.
constexpr int kAllowed[] = {SCMP_SYS(read),
                            SCMP_SYS(write),
                            SCMP_SYS(close),
                            SCMP_SYS(recvmsg),
                            SCMP_SYS(sendmsg),
                            SCMP_SYS(brk),
                            SCMP_SYS(munmap),
                            SCMP_SYS(mremap),
                            SCMP_SYS(madvise),
                            SCMP_SYS(futex),
                            SCMP_SYS(set_robust_list),
                            SCMP_SYS(rseq),
                            SCMP_SYS(sched_yield),
                            SCMP_SYS(sched_getaffinity),
                            SCMP_SYS(getpid),
                            SCMP_SYS(gettid),
                            SCMP_SYS(getrandom),
                            SCMP_SYS(clock_gettime),
                            SCMP_SYS(clock_nanosleep),
                            SCMP_SYS(nanosleep),
                            SCMP_SYS(gettimeofday),
                            SCMP_SYS(restart_syscall),
                            SCMP_SYS(rt_sigprocmask),
                            SCMP_SYS(rt_sigreturn),
                            SCMP_SYS(exit),
                            SCMP_SYS(exit_group)};

bool add_rules(scmp_filter_ctx filter) {
  for (const int call : kAllowed)
    if (seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0) != 0) return false;
  // No memory may be executable.
  for (const int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)})
    if (seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1,
                         SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)) != 0)
      return false;
  // Threads are allowed, processes are not. Rules cannot check the flags of clone3, which are in
  // memory. Without clone3, glibc uses clone.
  constexpr scmp_datum_t kThread = CLONE_THREAD | CLONE_VM;
  return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                          SCMP_A0(SCMP_CMP_MASKED_EQ, kThread, kThread)) == 0 &&
         seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) == 0;
}

std::uint64_t address_space() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (!file) return 0;
  unsigned long pages = 0;
  const bool read = std::fscanf(file, "%lu", &pages) == 1;
  std::fclose(file);
  return read ? pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

/// Keeps a lower limit.
bool limit_to(decltype(RLIMIT_AS) what, std::uint64_t most) {
  rlimit limit{};
  if (::getrlimit(what, &limit) != 0) return false;
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, most);
  limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  return ::setrlimit(what, &limit) == 0;
}

bool limit_memory(std::uint64_t bytes) {
// A sanitizer's shadow memory is larger than any limit.
#if defined(__SANITIZE_ADDRESS__)
  static_cast<void>(bytes);
  static_cast<void>(address_space);
  return true;
#else
  if (bytes == 0) return true;
  const std::uint64_t had = address_space();
  return had > 0 && limit_to(RLIMIT_AS, had + bytes);
#endif
}

}  // namespace

bool can_confine() {
  return true;
}

bool confine(std::uint64_t bytes) {
  if (!limit_memory(bytes) || !limit_to(RLIMIT_CORE, 0) || !limit_to(RLIMIT_FSIZE, 0)) return false;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  const std::unique_ptr<void, Release> filter(seccomp_init(SCMP_ACT_ERRNO(EPERM)));
  return filter && add_rules(filter.get()) && seccomp_load(filter.get()) == 0;
}

}  // namespace vfm::media

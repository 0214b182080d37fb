// Locks on single bytes of a file that programs of one machine share.
//
// The locks are open file description locks (fcntl(2)). The kernel frees a lock when the program
// ends, but not when SIGSTOP or Ctrl-Z stops the program. Therefore a waiting thread obeys a stop
// request (base/stop.h), and logs the holder of the lock after two seconds. Threads that share a
// file descriptor do not exclude each other.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace vfm::share {

/// Calls fcntl() for one byte. `command` is F_OFD_SETLK, F_OFD_SETLKW or F_OFD_GETLK; `type` is
/// F_WRLCK or F_UNLCK. F_OFD_GETLK sets `found` to the type of lock that it found. Returns 0, or an
/// errno value.
int lock_byte(int fd, int command, short type, off_t byte, short* found = nullptr);

/// Waits for the lock of a byte. Returns 0, or an errno value. After two seconds, logs a warning
/// that names `path` and the process that holds the lock. The file has the holder's pid at offset
/// `holder` (8 bytes, 0 if unknown). After a stop request (base/stop.h), returns ECANCELED if
/// SIGSTOP has stopped the holder, or if the lock is still not free after half a second.
int await_byte(int fd, off_t byte, const std::string& path, off_t holder);

/// Returns whether the process is stopped (SIGSTOP). Returns false if this is unknown.
bool is_stopped(std::int64_t pid);
/// Returns "vfm-clip (process 4711)", or "another program" if the process is not visible.
std::string name_process(std::int64_t pid);

}  // namespace vfm::share

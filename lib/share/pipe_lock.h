// Locks of single bytes of a file that programs of one machine share, and the names of their
// holders.
//
// The locks are open file description locks (fcntl(2)): the kernel frees a lock however its program
// ends. Nothing frees the lock of a program that SIGSTOP or Ctrl-Z has stopped. So a waiting thread
// obeys a stop request (base/stop.h), and logs the holder after two seconds.
//
// Threads of one program that share a descriptor do not exclude one another.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace vfm::share {

/// Calls fcntl() for one byte. `command`: F_OFD_SETLK, F_OFD_SETLKW or F_OFD_GETLK; `type`: F_WRLCK
/// or F_UNLCK. Sets `found` to the type that F_OFD_GETLK returns. Returns 0, or an errno value.
int lock_byte(int fd, int command, short type, off_t byte, short* found = nullptr);

/// Waits for the lock of a byte. Returns 0, or an errno value. After two seconds it logs a warning
/// that names `path` and the holder: the process whose number (8 bytes, 0: unknown) is in the file
/// at offset `holder`. After a stop request, returns ECANCELED if the holder is stopped or keeps
/// the lock for another half second.
int await_byte(int fd, off_t byte, const std::string& path, off_t holder);

/// Returns whether the process is stopped (SIGSTOP). Returns false if that is unknown.
bool is_stopped(std::int64_t pid);
/// Returns "vfm-clip (process 4711)", or "another program" if the process is not visible.
std::string name_process(std::int64_t pid);

}  // namespace vfm::share

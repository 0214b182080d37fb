// Locks of single bytes of a file that programs of one machine share, and the names of their
// holders.
//
// They are those of open file descriptions (fcntl(2)): the kernel frees one however its program
// ends. Nothing frees the lock of a stopped program (SIGSTOP, or Ctrl-Z of one program of a pipe).
// So a waiting thread heeds a stop of its own program, and logs the holder after two seconds.
// Frequent work should need no such lock.
//
// Threads of one program that share a descriptor do not exclude one another.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace vfm::share {

/// F_OFD_SETLK, _SETLKW or _GETLK with F_WRLCK or F_UNLCK for one byte: 0, or an errno value.
/// `found`: what F_OFD_GETLK says.
int lock_byte(int fd, int command, short type, off_t byte, short* found = nullptr);

/// Waits for the lock of a byte: 0, or an errno value. After two seconds it logs as a warning who
/// holds up this program: `path`, and the process whose number (8 bytes, 0: unknown) stands in the
/// file at `holder`. ECANCELED: a stop was asked for, and that process is stopped, or has kept the
/// lock for half a second since; a running holder frees it in microseconds.
int await_byte(int fd, off_t byte, const std::string& path, off_t holder);

/// Whether that process is stopped; false also if unknown.
bool is_stopped(std::int64_t pid);
/// "vfm-clip (process 4711)", the system's name for it; "another program" where it is not visible.
std::string name_process(std::int64_t pid);

}  // namespace vfm::share

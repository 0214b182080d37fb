// Handles the signals of this process in a thread.
//
// oneDNN's AVX-512 matrix products use the stack pointer as an ordinary register, and a signal's
// frame is written where the stack pointer points. Therefore SIGINT, SIGTERM, SIGHUP and SIGUSR1
// are blocked in all other threads, also in threads of libraries. No signal interrupts a blocking
// read or open. Code with such calls must check for a stop (base/stop.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::cli {

/// Restores the default action of SIGCHLD. A parent may have made this process ignore SIGCHLD,
/// which hides the exit status of children. Call it before anything else.
void hear_of_children();

/// Starts the thread that handles signals. Call it once, before any other thread starts. The first
/// SIGINT, SIGTERM or SIGHUP asks to stop (base/stop.h), and a second signal of the same kind kills
/// the process, a SIGTERM not before five seconds have passed. Signals that are already ignored, as
/// under nohup, are not handled. With `winds_up`, SIGUSR1 asks to end at the next good moment.
/// Otherwise SIGUSR1 ends the process. Without `long_running`, a closed output pipe ends the
/// process as SIGPIPE does. Children get the original signal mask. Throws std::system_error if the
/// thread cannot be started.
void take_signals(bool long_running, bool winds_up);

/// Handles SIGBUS: if a mapped file cannot be read, the process ends with status 1 and a message
/// that names the file. The message begins with `program`, which must be valid until the process
/// ends.
void take_lost_files(const char* program);

/// Ignores the signals of terminals and pipes, in a process that is ended by its parent.
void leave_signals();

/// Ends the process by the signal's default action. The shell then sees status 128+n.
void end_by_signal(int signal_number);

}  // namespace vfm::cli

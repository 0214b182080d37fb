// A thread of its own handles the signals of this process.
//
// SIGINT, SIGTERM, SIGHUP and SIGUSR1 are blocked in every other thread: oneDNN's AVX-512 matrix
// products use the stack pointer as an ordinary register, and a signal's frame would be written
// wherever this register points. A thread inherits the mask of the thread that starts it, so
// threads of OpenMP, FFmpeg, MPI and CUDA block them, too. Code that blocks in a read or an open
// must check base/stop.h itself, since no signal interrupts it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::cli {

/// Undoes an inherited ignored SIGCHLD, which would hide the exit status of children from this
/// process and from processes that it starts. Call it before anything else.
void hear_of_children();

/// Call once, before the first thread is made. From then on the first SIGINT, SIGTERM or SIGHUP
/// asks to stop (base/stop.h), and a second signal of the same kind kills the process. Ignored
/// signals, as by nohup, stay ignored. With `long_running`, SIGUSR1 asks to wind up. Without it,
/// SIGUSR1 ends the process, and an output whose reader has gone stops the program as SIGPIPE
/// would. Children get the original signal mask. Throws std::system_error if no thread can be made.
void take_signals(bool long_running);

/// From now on a mapped file that cannot be read (SIGBUS) ends the process with status 1 and a
/// message that names the file. The message begins with `program`, which must stay valid.
void take_lost_files(const char* program);

/// Ignores the signals of terminals and pipes, for a process that its parent ends.
void leave_signals();

/// Ends the process by the signal's default action, so that the shell sees 128+n.
void end_by_signal(int signal_number);

}  // namespace vfm::cli

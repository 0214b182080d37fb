// One thread that does nothing else handles the signals of this process.
//
// SIGINT, SIGTERM, SIGHUP and SIGUSR1 are blocked in every thread that computes, the main one too:
// oneDNN's AVX-512 matrix products use the stack pointer as an ordinary register, and the frame of
// a signal would land wherever it points. A thread inherits the mask of the thread that starts it,
// so this holds for the threads of OpenMP, FFmpeg, MPI and CUDA. Code that blocks in a read or an
// open must check base/stop.h itself (io/file.h does), since no signal interrupts it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::cli {

/// Call first. Undoes an inherited ignored SIGCHLD, which would hide how children end: this
/// process, and those that it starts, wait for their children.
void hear_of_children();

/// Call once, before the first thread is made. From then on the first SIGINT, SIGTERM or SIGHUP
/// asks to stop (base/stop.h), and a second one of its kind kills the process; ignored signals, as
/// by nohup, stay ignored. `long_running`: SIGUSR1 asks to wind up; else it ends the process, and
/// an output whose reader has gone is a stop by SIGPIPE. Children get the original signal mask.
/// Throws std::system_error when no thread can be made.
void take_signals(bool long_running);

/// From then on a mapped file that cannot be read (SIGBUS) ends the process with status 1 and a
/// message that names the file and begins with `program`, which must stay valid.
void take_lost_files(const char* program);

/// Ignores the signals of terminals and pipes: for a process that its parent ends.
void leave_signals();

/// Ends the process by this signal's default action, so that the shell sees 128+n.
void end_by_signal(int signal_number);

}  // namespace vfm::cli

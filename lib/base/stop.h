// The stop flag, by which SIGINT and SIGTERM end long loops.
//
// The signal handler in cli/ only sets the flag. Long loops call check_stop() between items and
// clean up by ordinary unwinding. The runner (cli/runner.h) raises the signal again at the end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// Requests a stop by this signal. Only the first signal is kept. Async-signal-safe.
void request_stop(int signal_number) noexcept;
/// Returns the signal that requested a stop, or 0.
int stop_signal() noexcept;
/// Returns whether work must end, after a signal or after end_run() (run_end.h).
bool stop_requested() noexcept;
/// Throws Stopped if stop_requested().
void check_stop();

/// After this call, the program stops, as after SIGPIPE, when the reader of an output has gone. The
/// signal itself is ignored, so that the program can give back slots (share/slots.h).
void stop_at_closed_pipes() noexcept;
/// Reports that the reader of an output has gone. Does nothing without stop_at_closed_pipes().
void note_closed_pipe() noexcept;

/// Requests a gentle stop, for SIGUSR1 (Slurm's warning before the time limit). Then long work that
/// saves its state finishes the step, saves, and ends with success. Other work does not stop.
/// Async-signal-safe.
void request_wind_up() noexcept;
bool wind_up_requested() noexcept;

}  // namespace vfm

// The stop flag, by which SIGINT and SIGTERM end long loops.
//
// The signal handler in cli/ only sets the flag. Long loops call check_stop() between items and
// clean up by ordinary unwinding. The runner (cli/runner.h) re-raises the signal at the end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// Asks for a stop by this signal; the first signal wins. Async-signal-safe.
void request_stop(int signal_number) noexcept;
/// Returns the signal that asked to stop, or 0.
int stop_signal() noexcept;
/// Returns whether work must end: after a signal, or after end_run() (run_end.h).
bool stop_requested() noexcept;
/// Throws Stopped if stop_requested().
void check_stop();

/// From now on an output whose reader has gone asks for a stop by SIGPIPE. The signal itself is
/// ignored, so that the program can give back slots (share/slots.h).
void stop_at_closed_pipes() noexcept;
/// Says that the reader of an output has gone. Does nothing unless stop_at_closed_pipes() was
/// called.
void note_closed_pipe() noexcept;

/// Asks for a gentle stop, for SIGUSR1 (Slurm's warning before the time limit): finish the step,
/// save, and end with success. Only long-running work that saves state obeys it. Async-signal-safe.
void request_wind_up() noexcept;
bool wind_up_requested() noexcept;

}  // namespace vfm

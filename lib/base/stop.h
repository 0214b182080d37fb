// The stop flag, by which SIGINT and SIGTERM reach loops although the handler does no work.
//
// cli/ sets it from the signal handler; long loops call check_stop() between items, clean up by
// ordinary unwinding, and the runner re-raises the signal at the end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// Async-signal-safe. The first signal wins.
void request_stop(int signal_number) noexcept;
/// The signal that asked to stop, or 0.
int stop_signal() noexcept;
/// Whether work is to end: by a signal, or because the run ends itself (run_end.h).
bool stop_requested() noexcept;
/// Throws Stopped if so.
void check_stop();

/// From now on an output whose reader has gone counts as a stop by SIGPIPE. The signal itself is
/// ignored: it would end the program before it gives back slots (share/slots.h).
void stop_at_closed_pipes() noexcept;
/// Says that the reader of an output has gone. Does nothing unless stop_at_closed_pipes() was
/// called.
void note_closed_pipe() noexcept;

/// The gentle form, for SIGUSR1 (Slurm's warning before the time limit): finish the step, save, and
/// end well. Only long-running work with something to save checks it. Async-signal-safe.
void request_wind_up() noexcept;
bool wind_up_requested() noexcept;

}  // namespace vfm

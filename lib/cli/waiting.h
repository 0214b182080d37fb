// Shortens the waits of idle OpenMP threads when other programs need the processors.
//
// Between two parallel regions a thread of libgomp spins for milliseconds before it sleeps. If
// every thread has a processor, spinning is fastest. If threads share a processor, a spinning
// thread takes time from a working thread. So a thread here asks the kernel how long this process's
// threads were ready to run without a processor. If threads wait for a processor, idle threads spin
// only some microseconds.
//
// The waits are unchanged if libgomp is not linked into the program (lib/cli/meson.build), or if
// the user has set OMP_WAIT_POLICY or GOMP_SPINCOUNT.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::cli {

/// Starts the thread. Call once, after take_signals(), whose signal mask the thread inherits.
void wait_politely();

}  // namespace vfm::cli

// Makes idle OpenMP threads sleep earlier when other programs need the processors.
//
// An idle thread of libgomp spins for milliseconds before it sleeps, which takes time from working
// threads. Therefore a thread measures how long the threads of this process wait for a processor.
// If they wait long, idle threads spin only for some microseconds.
//
// Nothing changes if the program is not linked with libgomp (lib/cli/meson.build), or if the user
// has set OMP_WAIT_POLICY or GOMP_SPINCOUNT.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::cli {

/// Starts the thread. Call it once, after take_signals().
void wait_politely();

}  // namespace vfm::cli

// How OpenMP threads wait for work when other programs need the processors too.
//
// Between two parallel regions a thread of libgomp looks for work for milliseconds before it
// sleeps. If every thread has a processor, that is fastest. If threads share one, a waiting thread
// takes time from a working one: beside one busy program two threads were 5 to 15 times slower than
// one. So a thread here asks the kernel how long this process's threads were ready without a
// processor; while they are, all wait only some microseconds before they sleep.
//
// This needs libgomp linked into the program, where one of its variables can be set at run time
// (lib/cli/meson.build). Without that, or if the user has set OMP_WAIT_POLICY or GOMP_SPINCOUNT,
// waiting is unchanged.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::cli {

/// Call once, after take_signals(), whose mask the thread inherits.
void wait_politely();

}  // namespace vfm::cli

// How OpenMP threads wait for work when other programs need the processors too.
//
// Between two parallel regions a thread of libgomp looks for work for milliseconds before it
// sleeps. Where every thread has a processor nothing is faster. Where threads share one, a thread
// that only looks takes time from the thread that works: beside one busy program two threads were 5
// to 15 times slower than one. So a thread of this file asks the kernel how long this process's
// threads stood ready without a processor, and while they do, all look for some microseconds only
// and then sleep.
//
// This needs libgomp linked into the program, where one variable of it can be set at run time
// (lib/cli/meson.build); without that, or where the user has set OMP_WAIT_POLICY or
// GOMP_SPINCOUNT, waiting stays as it is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::cli {

/// Call once, after take_signals(), whose mask the thread inherits.
void wait_politely();

}  // namespace vfm::cli

// Host memory that this program uses apart from tensors, for estimates of what it will need.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// Returns the bytes that a program of this kind needs besides its tensors and buffers: the peak of
/// this process's resident memory so far, plus the code of libraries that is loaded only by
/// computing. Meant for a dry run, which has computed nothing. 0 if unknown. Thread-safety: any
/// thread.
double program_memory();

/// Returns the bytes of anonymous memory that this program has resident now, including tensors. 0
/// if unknown. Thread-safety: any thread.
double anonymous_memory();

}  // namespace vfm

// What this program has of the host's memory for itself, for estimates of what it will need.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm {

/// Bytes that a program of this kind needs besides its tensors and buffers: as many as this one has
/// had resident so far, and the code of libraries that only computing comes to. Meant for a dry
/// run, which has computed nothing. 0 where it is not known. Thread-safety: any thread.
double program_memory();

/// Bytes of anonymous memory that this program has resident now, its tensors among them. 0 where it
/// is not known. Thread-safety: any thread.
double anonymous_memory();

}  // namespace vfm

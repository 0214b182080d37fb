// Inside lib/media only: restricts a process to the rights that decoding needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vfm::media {

/// Returns true if this build supports confine().
bool can_confine();

/// Restricts this process permanently with seccomp(2). The process, which must have one thread, can
/// afterwards only use its open and mapped files, allocate memory, start threads, and end. All
/// other system calls fail. `bytes` limits the memory that the process can still allocate; 0 means
/// no limit. If the system refuses, restricts nothing and returns false.
bool confine(std::uint64_t bytes);

}  // namespace vfm::media

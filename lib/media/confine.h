// Inside lib/media only: a process gives up what decoding does not need.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vfm::media {

/// Whether this vfm was built with what confine() needs.
bool can_confine();

/// From now on this process, which must have one thread, can use what it has open and mapped, take
/// memory, compute in threads, and end. It can open or make no file, no socket and no process, send
/// no signal, and run no other code than it has: such calls fail. `bytes`: of memory that it may
/// take beside what it has; 0: any. The rules are the kernel's (seccomp(2)), and last. Returns
/// false, having done nothing that matters, where the system refuses.
bool confine(std::uint64_t bytes);

}  // namespace vfm::media

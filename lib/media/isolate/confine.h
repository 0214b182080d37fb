// Inside lib/media only: restricts a process to what decoding needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vfm::media {

/// Returns true if this build supports confine().
bool can_confine();

/// From now on this process, which must have one thread, can only use its open and mapped files,
/// allocate memory, compute in threads, and end. Calls to open or create a file, socket or process,
/// send a signal, or run other code fail. `bytes` is how much more memory the process can allocate;
/// 0 means any amount. The kernel enforces this permanently (seccomp(2)). Returns false, without
/// restricting the process, if the system refuses.
bool confine(std::uint64_t bytes);

}  // namespace vfm::media

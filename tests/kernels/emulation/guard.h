// Proves that no access of a kernel goes unseen: while it is on, memory of the device and shared
// memory are pages that nobody may touch. The processor then stops at each load and store, and if
// the compiler's call (tsan.cc) did not tell of it, that is a fault; else that one instruction goes
// through. Each stop takes microseconds, so only a kernel's first accesses are guarded.
// On x86-64 under Linux; elsewhere nothing is guarded. Thread-safety: one launch at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vfm::emulation::guard {

/// A launch begins. After the first `start` accesses that were announced nobody may touch memory,
/// for the next `accesses`.
void begin(std::uint64_t start, unsigned accesses);
/// How many were announced since.
std::uint64_t announced();
/// Ends the guard. Places of code that touched memory of which nobody had told.
std::vector<const void*> end();

/// Lets the emulation itself fill shared memory, between blocks.
void lift();
void lower();

/// That an access comes now.
void announce(const void* at, std::size_t bytes);

/// How many accesses were stopped at since the program began.
std::uint64_t stops();

}  // namespace vfm::emulation::guard

// Looks at what the threads of an emulated kernel do to memory, access by access.
//
// The kernels are compiled with GCC's -fsanitize=thread, which calls a function before each load
// and store; here they are (tsan.cc), in place of the sanitizer's library. What is found:
// - races: two threads touch one byte of shared or global memory, at least one writes, and nothing
//   orders them (races.h);
// - memory that is not the device's: beyond an allocation, or beyond the shared memory that the
//   launch asked for;
// - how many wavefronts and sectors each access of a warp takes (traffic.h).
// A race, or wild memory, ends the program after the launch, with a message.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emulation.h"
#include "traffic.h"

namespace vfm::emulation {

/// Whether accesses are looked at. At first they are not, unless the environment's VFM_EMULATION is
/// "watch". Not while a kernel runs.
void watch(bool on);

/// From now on faults do not end the program, but are kept. Returns those kept so far, each as one
/// line: kernel, place in memory, and for races both threads with their lines of source.
std::vector<std::string> take_faults();

/// What the kernels launched since the last call did, by the kernels' names with template
/// arguments.
std::map<std::string, Traffic> take_traffic();
/// The same by lines of source, for those with more than the least.
std::map<std::string, Traffic> take_places();

enum class Access : std::uint8_t {
  read,
  write,
  atomic,
  copy_begins,  ///< a write that may be done at any time until copy_ends, by the same thread
  copy_ends,
};

/// Called by the rest of the emulation.
namespace watched {

extern bool active;  ///< while a kernel runs, if accesses are looked at

void launch_begins(const Launch& launch);
void launch_ends();
void block_begins();
void block_ends();
void block_synced();
void warp_synced(unsigned warp, bool orders_memory);

/// The running thread touches memory, at a place in the program. Only for races and wild memory.
void touch(const void* at, std::size_t bytes, Access access, const void* place);
/// It takes part in an access of its warp. Only for the traffic; at most 16 bytes.
void transfer(const void* at, std::size_t bytes, const void* place);
/// Both: a load or a store. What is longer than 16 bytes, or may not be aligned, goes in parts.
void load_or_store(const void* at, std::size_t bytes, bool aligned, Access access,
                   const void* place);

}  // namespace watched
}  // namespace vfm::emulation

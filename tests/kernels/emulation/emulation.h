// Runs CUDA kernels on the host, so that their logic is tested on machines without a GPU.
//
// A kernel's source is compiled as C++ against the headers of this folder instead of CUDA's. The
// threads of a block are fibers on one thread of the host, which change only where a kernel waits
// for others: at barriers and in the collectives of a warp. Blocks run one after the other. What
// cannot be seen here: speed, memory that other blocks write meanwhile. What can: wrong indices
// (under a sanitizer), wrong arithmetic, vectors that are not aligned (a trap), and, since each
// launch may run its threads in either order, a missing barrier. Thread-safety: one launch at a
// time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}  // NOLINT: as CUDA's
};

extern uint3 threadIdx, blockIdx;  // of the running thread
extern dim3 blockDim, gridDim;

namespace vfm::emulation {

/// The dynamic shared memory of the running block.
unsigned char* shared_memory();

/// Waits for all threads of the block, or of the warp, that have not returned. The program ends
/// with a message when threads wait at barriers of different kinds for ever.
void wait_for_block();
void wait_for_warp();

/// Gives `bytes` (at most 64) to the warp, and returns what lane `lane` gave at the same call;
/// valid until the warp's next collective.
const void* exchange(const void* value, std::size_t bytes, int lane);
/// For collectives that need what all lanes gave: publish, then read any lane, then
/// wait_for_warp().
void publish(const void* value, std::size_t bytes);
const void* published(int lane);

/// Runs `thread` once for every thread of every block. Threads of a block take their turns in
/// ascending order; in the next launch in descending order, and so on.
void run(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& thread);

}  // namespace vfm::emulation

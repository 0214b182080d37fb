// Runs CUDA kernels on the host, so that their logic is tested on machines without a GPU.
//
// A kernel's source is compiled as C++ against the headers of this folder instead of CUDA's. The
// threads of a block are fibers on one thread of the host, which change only where a kernel waits
// for others: at barriers and in the collectives of a warp. Blocks run one after the other, the
// warps of a block in an order of chance. What cannot be seen here: speed. What can: wrong indices
// (under a sanitizer), wrong arithmetic, vectors that are not aligned (a trap), a missing barrier;
// and what watch.h says. Thread-safety: one launch at a time.
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

constexpr unsigned kWarp = 32, kMostThreads = 1024;

/// The dynamic shared memory of the running block.
unsigned char* shared_memory();
/// All shared memory there is: the dynamic one, and every __shared__ variable of the program.
struct Bytes {
  unsigned char* begin;
  std::size_t size;
};
Bytes all_shared_memory();
/// The stacks of all threads.
Bytes all_stacks();

/// A number of chance, a function of the seed (see run) and of what was drawn before.
unsigned chance();

/// Index in its block of the thread that runs.
unsigned running_thread();

/// Waits for all threads of the block, or of the warp, that have not returned. The program ends
/// with a message when threads wait at barriers of different kinds for ever. Only
/// where it `orders_memory` do the warp's threads see what others wrote before: a shuffle does not.
void wait_for_block();
void wait_for_warp(bool orders_memory = false);

/// A barrier of the block, after which each knows whether it was true for any.
bool any_of_block(bool mine);

/// Gives `bytes` (at most 128) to the warp, and gets what lane `lane` gave at the same call.
void exchange(void* value, std::size_t bytes, int lane);
/// For collectives that need what all lanes gave: publish, then read any lane, then
/// wait_for_warp().
void publish(const void* value, std::size_t bytes);
const void* published(int lane);

/// The value before.
unsigned atomic_max(unsigned* at, unsigned value);

struct Launch {
  const void* kernel = nullptr;
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  Bytes arguments{};
};
/// Runs `thread` once for every thread of every block. The order in which warps, and the lanes of a
/// warp, go on is a function of the seed: the environment's VFM_EMULATION_SEED, or else one of
/// chance, which is printed when the program fails.
void run(const Launch& launch, const std::function<void()>& thread);

/// Ends the program with a message, and the seed.
[[noreturn]] void stop(const char* why);

}  // namespace vfm::emulation

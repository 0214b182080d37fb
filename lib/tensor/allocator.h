// The CPU allocator of Tensor: a CachingAllocator over the C library's memory. Blocks are 64-byte
// aligned; large ones are aligned for huge pages. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "tensor/tensor.h"

namespace vfm {

/// At least `bytes` bytes, uninitialised; goes back to the allocator with the last owner. Throws
/// Error when the system has no more.
std::shared_ptr<void> allocate_cpu(std::size_t bytes);

/// The size of the block that a request of `bytes` gets: eight classes to a power of two, so at
/// most an eighth is wasted.
std::size_t block_size(std::size_t bytes) noexcept;

/// The same of a request on a GPU (memory_cuda.cc): large ones in whole pages, as an eighth of an
/// activation would be too much to waste.
std::size_t gpu_block_size(std::size_t bytes) noexcept;

/// Gives what is kept for reuse back to the system.
void release_cached_memory() noexcept;

/// From now on cpu_memory().peak is what is in use at most.
void reset_memory_peak();

}  // namespace vfm

// The CPU allocator of Tensor: a CachingAllocator over the C library's memory. Blocks are 64-byte
// aligned; large blocks are aligned for huge pages. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "tensor/tensor.h"

namespace vfm {

/// Returns at least `bytes` uninitialised bytes, which go back to the allocator with their last
/// owner. Throws Error when the system has no more memory.
std::shared_ptr<void> allocate_cpu(std::size_t bytes);

/// Returns the size of the block that a request of `bytes` gets. There are eight sizes to a power
/// of two, so at most an eighth of a block is wasted.
std::size_t block_size(std::size_t bytes) noexcept;

/// Returns the block size for a request on a GPU (memory_cuda.cc). Large requests are rounded up to
/// whole pages only: an eighth of an activation would be too much to waste.
std::size_t gpu_block_size(std::size_t bytes) noexcept;

/// MemorySource::limit of the CPU: little more than what was in use, for the pages of a kept block
/// become those of another.
std::size_t memory_limit(std::size_t most) noexcept;
/// The same of a GPU, which stops when memory is given back.
std::size_t gpu_memory_limit(std::size_t most) noexcept;

/// Gives the blocks that are kept for reuse back to the system.
void release_cached_memory() noexcept;

/// Starts cpu_memory().peak again from the memory in use now.
void reset_memory_peak();

}  // namespace vfm

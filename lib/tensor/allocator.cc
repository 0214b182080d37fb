// SPDX-License-Identifier: Apache-2.0
#include "tensor/allocator.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "tensor/caching_allocator.h"

namespace vfm {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

void* get(std::size_t size) noexcept {
  const std::size_t alignment = size >= kHugePage ? kHugePage : kAlignment;
  const std::size_t whole = (size + alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(alignment, whole);
  // A hint: failure is harmless.
  if (block != nullptr && alignment == kHugePage) madvise(block, size, MADV_HUGEPAGE);
  return block;
}

// Never destroyed: tensors in static objects may outlive any order of destruction.
CachingAllocator& allocator() {
  static CachingAllocator* const instance = new CachingAllocator({get, std::free, block_size, ""});
  return *instance;
}

}  // namespace

std::size_t block_size(std::size_t bytes) noexcept {
  if (bytes <= 8 * kAlignment)
    return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  const std::size_t step = std::max(kAlignment, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

std::size_t gpu_block_size(std::size_t bytes) noexcept {
  constexpr std::size_t kSmallest = 512, kLarge = std::size_t{32} << 20, kPage = kHugePage;
  if (bytes >= kLarge) return (bytes + kPage - 1) / kPage * kPage;
  const std::size_t power = std::max(kSmallest, std::bit_floor(bytes));
  const std::size_t step = power == kSmallest ? kSmallest : power / 8;
  return bytes == 0 ? kSmallest : (bytes + step - 1) / step * step;
}

std::shared_ptr<void> allocate_cpu(std::size_t bytes) {
  return allocator().allocate(bytes);
}

void release_cached_memory() noexcept {
  allocator().release();
  malloc_trim(0);  // the C library would keep what lies between blocks in use
}

void reset_memory_peak() {
  allocator().reset_peak();
}

MemoryStats cpu_memory() {
  return allocator().stats();
}

}  // namespace vfm

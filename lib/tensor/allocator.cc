// SPDX-License-Identifier: Apache-2.0
#include "tensor/allocator.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tensor/caching_allocator.h"

namespace vfm {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
// The largest page of systems that run vfm. A mapped block is several.
constexpr std::size_t kPage = std::size_t{64} << 10;

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VFM_LOOKED_AFTER 1  // a sanitizer sees only what the C library gives
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(VFM_LOOKED_AFTER)
constexpr bool kMaps = false;
#else
constexpr bool kMaps = true;
#endif

// Large blocks are mappings of their own, so that what is put back is free at once: the C library
// would keep it between other blocks.
bool is_large(std::size_t size) {
  return kMaps && size >= kHugePage / 8;
}

// A mapping begins where a huge page does. The C library gives other addresses only (get()).
bool is_mapped(const void* block, std::size_t size) {
  return is_large(size) && reinterpret_cast<std::uintptr_t>(block) % kHugePage == 0;
}

std::size_t mapped_size(std::size_t size) {
  return (size + kPage - 1) / kPage * kPage;
}

// Addresses that begin where a huge page does, without memory yet.
void* map(std::size_t size, int protection) noexcept {
  void* const mapped =
      mmap(nullptr, size + kHugePage, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(mapped) % kHugePage;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + size, kHugePage - before);
  return begin + before;
}

void* get(std::size_t size) noexcept {
  if (!is_large(size)) return std::aligned_alloc(kAlignment, size);
  if (void* const block = map(mapped_size(size), PROT_READ | PROT_WRITE)) {
    madvise(block, size, MADV_HUGEPAGE);  // a hint: failure is harmless
    return block;
  }
  // The system limits the number of mappings (vm.max_map_count).
  void* const block = std::aligned_alloc(kAlignment, size);
  if (!is_mapped(block, size)) return block;
  std::free(block);
  return nullptr;
}

void put(void* block, std::size_t size) noexcept {
  if (is_mapped(block, size))
    munmap(block, mapped_size(size));
  else
    std::free(block);
}

// Keeps the pages of a mapping: the system clears new ones, which takes longer than to move them.
void* resize(void* block, std::size_t size, std::size_t to) noexcept {
  if (!is_mapped(block, size) || !is_large(to)) return nullptr;
  size = mapped_size(size), to = mapped_size(to);
  if (to < size && munmap(static_cast<std::byte*>(block) + to, size - to) != 0) return nullptr;
  if (to <= size) return block;
  void* const place = map(to, PROT_NONE);
  if (place == nullptr) return nullptr;
  void* const moved = mremap(block, size, to, MREMAP_MAYMOVE | MREMAP_FIXED, place);
  // After a failure the system may have given `place` to another thread, so it is left: addresses
  // without memory.
  return moved == MAP_FAILED ? nullptr : moved;
}

// Never destroyed: tensors in static objects may outlive any order of destruction.
CachingAllocator& allocator() {
  static CachingAllocator* const instance =
      new CachingAllocator({get, put, block_size, "", nullptr, resize, memory_limit});
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

std::size_t memory_limit(std::size_t most) noexcept {
  constexpr std::size_t kSpare = std::size_t{48} << 20;
  return most + kSpare;
}

std::size_t gpu_memory_limit(std::size_t most) noexcept {
  return most + most / 4;
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

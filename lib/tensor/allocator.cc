// SPDX-License-Identifier: Apache-2.0
#include "tensor/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/units.h"

namespace vfm {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

class Allocator {
 public:
  void* take(std::size_t size) {
    {
      std::lock_guard lock(mutex_);
      auto& blocks = free_[size];
      if (!blocks.empty()) {
        void* block = blocks.back();
        blocks.pop_back();
        stats_.cached -= size;
        count(size);
        return block;
      }
    }
    // A full cache without a block of this size: sizes have changed for good (another pack, another
    // model), and it is ballast.
    if (const MemoryStats now = stats(); now.current + size + now.cached > now.peak + now.peak / 4)
      release();
    const std::size_t alignment = size >= kHugePage ? kHugePage : kAlignment;
    void* block = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (block == nullptr) {
      release();
      block = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    }
    if (block == nullptr) fail("out of memory: cannot get {} more", format_bytes(size));
    if (alignment == kHugePage) madvise(block, size, MADV_HUGEPAGE);  // a hint: failure is harmless
    std::lock_guard lock(mutex_);
    count(size);
    return block;
  }

  void give(void* block, std::size_t size) noexcept {
    std::lock_guard lock(mutex_);
    stats_.current -= size;
    try {
      free_[size].push_back(block);
      stats_.cached += size;
    } catch (...) {  // no memory to remember it
      std::free(block);
    }
  }

  void release() noexcept {
    std::lock_guard lock(mutex_);
    for (auto& [size, blocks] : free_) {
      for (void* block : blocks)
        std::free(block);
      blocks.clear();
    }
    stats_.cached = 0;
  }

  MemoryStats stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  void count(std::size_t size) {
    stats_.current += size;
    stats_.peak = std::max(stats_.peak, stats_.current);
  }

  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> free_;
  MemoryStats stats_;
};

// Never destroyed: tensors in static objects may outlive any order of destruction.
Allocator& allocator() {
  static Allocator* const instance = new Allocator;
  return *instance;
}

}  // namespace

std::size_t block_size(std::size_t bytes) noexcept {
  if (bytes <= 8 * kAlignment)
    return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  const std::size_t step = std::max(kAlignment, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

std::shared_ptr<void> allocate_cpu(std::size_t bytes) {
  const std::size_t size = block_size(bytes);
  void* block = allocator().take(size);
  return {block, [size](void* p) { allocator().give(p, size); }};
}

void release_cached_memory() noexcept {
  allocator().release();
}

MemoryStats cpu_memory() {
  return allocator().stats();
}

}  // namespace vfm

// SPDX-License-Identifier: Apache-2.0
#include "tensor/caching_allocator.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"

namespace vfm {

std::shared_ptr<void> CachingAllocator::allocate(std::size_t bytes) {
  const std::size_t size = source_.block_size(bytes);
  void* block = take(size);
  return {block, [this, size](void* p) { give(p, size); }};
}

void* CachingAllocator::take(std::size_t size) {
  bool ballast = false;
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
    // A full cache without a block of this size: sizes have changed for good (another pack, another
    // model).
    ballast = !source_.keeps_all && stats_.current + size + stats_.cached > most_ + most_ / 4;
  }
  if (ballast) release();
  void* block = source_.get(size);
  if (block == nullptr) {
    release();
    block = source_.get(size);
  }
  if (block == nullptr && source_.make_room != nullptr && source_.make_room()) {
    release();
    block = source_.get(size);
  }
  if (block == nullptr)
    fail("out of memory{}: cannot get {} more, {} are in use", source_.where, format_bytes(size),
         format_bytes(stats().current));
  std::lock_guard lock(mutex_);
  count(size);
  return block;
}

void CachingAllocator::give(void* block, std::size_t size) noexcept {
  std::lock_guard lock(mutex_);
  stats_.current -= size;
  try {
    free_[size].push_back(block);
    stats_.cached += size;
  } catch (...) {  // no memory to remember it
    source_.put(block);
  }
}

void CachingAllocator::release() noexcept {
  std::lock_guard lock(mutex_);
  for (auto& [size, blocks] : free_) {
    for (void* block : blocks)
      source_.put(block);
    blocks.clear();
  }
  stats_.cached = 0;
}

MemoryStats CachingAllocator::stats() {
  std::lock_guard lock(mutex_);
  return stats_;
}

void CachingAllocator::reset_peak() {
  std::lock_guard lock(mutex_);
  stats_.peak = stats_.current;
}

void CachingAllocator::count(std::size_t size) {
  stats_.current += size;
  stats_.peak = std::max(stats_.peak, stats_.current);
  stats_.held = std::max(stats_.held, stats_.current + stats_.cached);
  most_ = std::max(most_, stats_.current);
}

}  // namespace vfm

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
  void* block = nullptr;
  {
    std::lock_guard lock(mutex_);
    auto& blocks = free_[size];
    if (!blocks.empty()) {
      block = blocks.back().block;
      blocks.pop_back();
      stats_.cached -= size;
      count(size);
      return block;
    }
    block = trim(size);
  }
  if (block == nullptr) block = source_.get(size);
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
    free_[size].push_back({block, ++calls_});
    stats_.cached += size;
  } catch (...) {  // no memory to remember it
    source_.put(block, size);
  }
}

void CachingAllocator::release() noexcept {
  std::lock_guard lock(mutex_);
  for (auto& [size, blocks] : free_) {
    for (const Kept& kept : blocks)
      source_.put(kept.block, size);
    blocks.clear();
  }
  stats_.cached = 0;
}

/// Makes room for a new block of this size; returns it, if it could be made of a kept one. What was
/// freed longest ago is of sizes that have changed (another pack, another model), or of another
/// part of the work.
void* CachingAllocator::trim(std::size_t size) noexcept {
  if (source_.limit == nullptr) return nullptr;
  const std::size_t used = stats_.current + size, limit = source_.limit(std::max(most_, used));
  void* largest = nullptr;  // of those that have to go
  std::size_t its_size = 0;
  while (stats_.cached > 0 && used + stats_.cached > limit) {
    auto oldest = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it)
      if (!it->second.empty() &&
          (oldest == free_.end() || it->second.front().freed < oldest->second.front().freed))
        oldest = it;
    auto& [bytes, blocks] = *oldest;
    void* const block = blocks.front().block;
    blocks.pop_front();
    stats_.cached -= bytes;
    if (bytes > its_size) {
      if (largest != nullptr) source_.put(largest, its_size);
      largest = block, its_size = bytes;
    } else {
      source_.put(block, bytes);
    }
  }
  if (largest == nullptr) return nullptr;
  void* const made = source_.resize != nullptr ? source_.resize(largest, its_size, size) : nullptr;
  if (made == nullptr) source_.put(largest, its_size);
  return made;
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

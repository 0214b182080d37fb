// What the allocators of all devices share: blocks of a few size classes, kept for reuse when
// freed.
//
// A training step asks for the same sizes every time, so that after the first step no memory is
// asked of the system: new pages of the host would cost more than the arithmetic of most ops, and
// cudaFree stops the whole GPU. Used and kept blocks together are at most 5/4 of what was ever in
// use at once, but for a source that wants all kept. Reuse is in the order of the calls, which on a
// GPU is the order of its one compute stream; memory that another stream still reads must be kept
// by its Tensor until then.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tensor/tensor.h"

namespace vfm {

/// Where blocks come from.
struct MemorySource {
  void* (*get)(std::size_t bytes) noexcept = nullptr;  ///< null when there is no more
  void (*put)(void* block) noexcept = nullptr;
  std::size_t (*block_size)(std::size_t bytes) noexcept = nullptr;  ///< the class of a request
  const char* where = "";                                           ///< for messages: " on the GPU"
  bool (*make_room)() noexcept = nullptr;  ///< asks others to give back; false if nobody did
  bool keeps_all = false;  ///< no limit to what is kept: it goes back when there is no more
};

class CachingAllocator {
 public:
  explicit CachingAllocator(const MemorySource& source) : source_(source) {}
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// At least `bytes` bytes, uninitialised; goes back to the allocator, which must outlive it, with
  /// the last owner. Throws Error when there is no more.
  std::shared_ptr<void> allocate(std::size_t bytes);
  /// Gives what is kept for reuse back to the source.
  void release() noexcept;
  MemoryStats stats();
  /// Forgets the peak: from now on it is what is in use now.
  void reset_peak();

 private:
  void* take(std::size_t size);
  void give(void* block, std::size_t size) noexcept;
  void count(std::size_t size);

  MemorySource source_;
  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> free_;
  MemoryStats stats_;
  std::size_t most_ = 0;  // ever in use at once
};

}  // namespace vfm

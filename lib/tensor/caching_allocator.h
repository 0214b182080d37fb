// The allocator that all devices share: it hands out blocks of a few sizes and keeps freed blocks
// for reuse.
//
// A training step asks for the same sizes every time, so after the first step no memory is
// requested from the system. New memory is slow: new pages of the host would cost more than the
// arithmetic of most ops, and cudaFree stops the whole GPU. Used and kept blocks together are
// little more than the most that was ever in use at once (MemorySource::limit): before a new block
// would be too much, kept ones go back, those first that were freed longest ago. Blocks are
// reused in the order of the calls, which on a GPU is the order of the one compute stream. If
// another stream still reads some memory, the caller must keep the Tensor until that stream is
// done.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "tensor/tensor.h"

namespace vfm {

/// Functions that get blocks from the system and give them back, and the limits of the cache.
struct MemorySource {
  void* (*get)(std::size_t bytes) noexcept = nullptr;  ///< null if there is no more memory
  void (*put)(void* block, std::size_t bytes) noexcept = nullptr;
  std::size_t (*block_size)(std::size_t bytes) noexcept = nullptr;  ///< size of a request's block
  const char* where = "";                                           ///< for messages: " on the GPU"
  bool (*make_room)() noexcept = nullptr;  ///< makes others give memory back; false if none did
  /// Makes a block of another size of one, if it can be; null: it cannot, and the block is as it
  /// was.
  void* (*resize)(void* block, std::size_t bytes, std::size_t to) noexcept = nullptr;
  /// The most bytes of used and kept blocks together, by the most that was ever in use at once;
  /// null: no limit until memory runs out.
  std::size_t (*limit)(std::size_t most) noexcept = nullptr;
};

class CachingAllocator {
 public:
  explicit CachingAllocator(const MemorySource& source) : source_(source) {}
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Returns at least `bytes` uninitialised bytes, which go back to the allocator with their last
  /// owner. The allocator must outlive them. Throws Error when there is no more memory.
  std::shared_ptr<void> allocate(std::size_t bytes);
  /// Gives the blocks that are kept for reuse back to the source.
  void release() noexcept;
  MemoryStats stats();
  /// Starts the peak again from the memory in use now.
  void reset_peak();

 private:
  void* take(std::size_t size);
  void give(void* block, std::size_t size) noexcept;
  void* trim(std::size_t size) noexcept;
  void count(std::size_t size);

  /// A block that is kept for reuse, and the number of the call that freed it.
  struct Kept {
    void* block = nullptr;
    std::uint64_t freed = 0;
  };

  MemorySource source_;
  std::mutex mutex_;
  std::unordered_map<std::size_t, std::deque<Kept>> free_;  // by size; the last freed at the end
  std::uint64_t calls_ = 0;                                 // that freed a block
  MemoryStats stats_;
  std::size_t most_ = 0;  // most bytes ever in use at once
};

}  // namespace vfm

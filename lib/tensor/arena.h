// Memory for work that is recorded once and then repeated (tensor/graph_cache.h).
//
// A recording needs the same addresses as long as it exists, but it keeps no values there between
// two replays. All recordings therefore share a few large regions. A part that the caller gives
// back is joined with its free neighbours and can be handed out again. Every recording begins with
// all regions empty. The results of a recording stay in use, so their memory is never handed out to
// another recording.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "tensor/caching_allocator.h"

namespace vfm {

class Arena {
 public:
  /// Takes regions from `source`, in the block sizes of `source`.
  explicit Arena(const MemorySource& source) : source_(source) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Returns `bytes` uninitialised bytes, aligned to 512, at the lowest free address with enough
  /// room. They go back to the arena with their last owner. If no region has room, takes another
  /// region; returns null if `source` has no more memory.
  std::shared_ptr<void> allocate(std::size_t bytes);
  /// Makes all regions together `bytes` large. Does nothing if they are as large already or if
  /// `source` has no more memory.
  void reserve(std::size_t bytes);
  /// Gives regions in which nothing is in use back to the source: release() all of them,
  /// release_new() those that came after the last keep().
  void release() noexcept { release(true); }
  void release_new() noexcept { release(false); }
  void keep() noexcept;
  std::size_t size() const;

 private:
  struct Part {
    std::size_t size = 0;
    bool free = true, first = false;  // the first part of its region
    bool kept = false;                // the region was there at keep(); set on its first part
  };
  using Parts = std::map<std::byte*, Part>;

  bool grow(std::size_t bytes);
  void release(bool kept) noexcept;
  void give(std::byte* at) noexcept;

  MemorySource source_;
  mutable std::mutex mutex_;
  Parts parts_;  // the parts of a region leave no gaps
};

}  // namespace vfm

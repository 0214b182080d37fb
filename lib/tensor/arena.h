// Memory for work that is recorded once and then repeated (tensor/graph_cache.h).
//
// A recording needs its addresses for ever, but nothing that lies there between two repetitions. So
// all recordings share a few large regions: a part that is given back is handed out again, joined
// with its free neighbours, and every recording begins with the same empty regions. What is kept
// beyond a recording, its results, is never handed out to another.
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
  /// Takes regions from `source`, in its block sizes.
  explicit Arena(const MemorySource& source) : source_(source) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// `bytes` bytes, aligned to 512, uninitialised, at the lowest address that has room; they go
  /// back with the last owner. Takes another region if there is no room; null if there is none.
  std::shared_ptr<void> allocate(std::size_t bytes);
  /// Makes the regions `bytes` in all, unless they are, or there is no more.
  void reserve(std::size_t bytes);
  /// Gives regions in which nothing is in use back to the source: all, or those that came after
  /// the last keep().
  void release() noexcept { release(true); }
  void release_new() noexcept { release(false); }
  void keep() noexcept;
  std::size_t size() const;

 private:
  struct Part {
    std::size_t size = 0;
    bool free = true, first = false;  // of its region
    bool kept = false;                // the region, said of its first part
  };
  using Parts = std::map<std::byte*, Part>;

  bool grow(std::size_t bytes);
  void release(bool kept) noexcept;
  void give(std::byte* at) noexcept;

  MemorySource source_;
  mutable std::mutex mutex_;
  Parts parts_;  // without gaps within a region
};

}  // namespace vfm

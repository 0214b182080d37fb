// Blocks of objects in the cache of a node (io/file_cache.h), for ranges that are read again.
//
// A file NAME.blocks in the folder has a stretch of 64 MiB of an object: the blocks that were read,
// each at its place, and behind the stretch a checksum for each of them. Nobody waits for a lock or
// for the disk. A block whose checksum does not fit is not there: its writer was killed, the power
// failed, or another program wrote the same bytes at this moment. It is fetched again.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "io/file_cache.h"

namespace vfm::io {

/// Bytes of a block, but for the last one of an object.
constexpr std::uint64_t kCacheBlock = std::uint64_t{32} << 10;

/// A block of an object, and where its bytes are in memory.
struct CachedBlock {
  std::uint64_t number = 0;
  std::span<std::byte> bytes;
};

class BlockCache {
 public:
  /// At most these bytes wait to be written.
  static constexpr std::size_t kMostWaiting = std::size_t{64} << 20;

  explicit BlockCache(std::shared_ptr<const CopyFolder> folder) : folder_(std::move(folder)) {}
  /// Writes what waits.
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  /// Reads blocks, in order of their numbers. `object` is a name that differs for each version.
  /// Returns those that are not there.
  std::vector<CachedBlock> read(const std::string& object,
                                std::span<const CachedBlock> blocks) const;
  /// Copies blocks, in order of their numbers; a thread writes them soon. Waits for that thread
  /// only if the disk is slower than the store for long. Throws what an earlier write threw.
  void write(const std::string& object, std::span<const CachedBlock> blocks);

 private:
  /// Blocks that follow each other in one file.
  struct Run {
    std::string object;
    std::uint64_t first = 0;
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };
  std::string path_of(const std::string& object, std::uint64_t block) const;
  void add(Run run);
  void work();
  void write_run(const Run& run) const;

  std::shared_ptr<const CopyFolder> folder_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Run> runs_;
  std::size_t waiting_ = 0;
  bool ended_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace vfm::io

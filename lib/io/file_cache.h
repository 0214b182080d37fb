// Copies of objects on a local disk, for what is read again and again or must be mapped: index
// files, shards of a training set, weights. Shared by all processes of a node.
//
// VFM_CACHE=DIR:SIZE (such as /scratch/vfm:200GB) or set_cache() names it. Copies are named by the
// object's address and version, so an object that changes has another copy. One process fetches an
// object, the others wait for it (flock, which the kernel ends with its holder). A copy appears by
// a rename, so kills leave only files that the next program removes. What was used least recently
// goes when the copies exceed SIZE, until a sixteenth of SIZE is free. A copy that is open or
// mapped stays readable after that. Without a cache, copies are files without names in TMPDIR, for
// this process alone. So are those of objects whose server tells no version.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "io/file.h"
#include "io/remote/remote_file.h"

namespace vfm::io {

/// Sets the cache of this process. `text` is DIR:SIZE. Throws Error{usage} for another text.
void set_cache(const std::string& text);
/// Returns whether this process has a cache.
bool has_cache();

/// Returns an open copy of an object's whole contents. Throws Error, also if the copy cannot be
/// written, or has more bytes than the cache. `path()` of the result is the address.
File cached_copy(const std::string& address);

/// Reads parts of an object through the cache, in blocks of 32 KiB (io/block_cache.h). What is not
/// there is fetched by few requests, and is written to the cache after the caller has it. Processes
/// do not wait for each other, so two of them may fetch the same block. Without a cache, reads the
/// ranges themselves.
class CachedFile {
 public:
  static std::shared_ptr<CachedFile> open(const std::string& address);
  /// The same for an object that is open.
  static std::shared_ptr<CachedFile> of(std::shared_ptr<RemoteFile> file);
  virtual ~CachedFile() = default;
  virtual std::uint64_t size() const = 0;
  /// As RemoteFile::pread_all().
  virtual void pread_all(std::span<const RemoteFile::Range> ranges) const = 0;
};

/// A folder of copies, under file_cache.cc and block_cache.cc and their tests.
class CopyFolder {
 public:
  /// The end of names of files of blocks, after 32 hex digits.
  static constexpr std::string_view kBlocks = ".blocks";

  /// Makes the folder, and removes what killed programs left in it.
  CopyFolder(std::string folder, std::uint64_t most_bytes);

  /// Returns the open copy NAME, 32 hex digits, of `bytes` bytes. If there is none, calls `fill`
  /// with an empty file, in which it writes as many bytes; other processes and threads that want
  /// the copy wait meanwhile. Throws what `fill` throws, and Stopped.
  File copy(const std::string& name, std::uint64_t bytes,
            const std::function<void(File&)>& fill) const;
  /// Counts bytes that will be written to files which have `there` bytes of them already, and
  /// removes what was used least recently if there are too many.
  void make_room(std::uint64_t bytes, std::uint64_t there = 0) const;
  const std::string& folder() const { return folder_; }
  std::uint64_t most_bytes() const { return most_; }

 private:
  std::uint64_t remove_oldest(std::uint64_t coming) const;

  std::string folder_;
  std::uint64_t most_;
};

}  // namespace vfm::io

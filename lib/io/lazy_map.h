// An object at its place in memory, of which only the bytes that are needed are fetched.
//
// The bytes lie in a file without a name (in TMPDIR), which has space only for what was fetched. So
// memory is freed as that of other mapped files. Who reads such bytes calls need_bytes() before; a
// read of others ends the process by SIGSEGV, and never gives wrong bytes.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/remote/remote_file.h"

namespace vfm::io {

class LazyMap {
 public:
  /// Reserves addresses, and fetches nothing. Throws Error.
  explicit LazyMap(std::shared_ptr<const RemoteFile> object);
  ~LazyMap();
  LazyMap(const LazyMap&) = delete;
  LazyMap& operator=(const LazyMap&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return object_->address(); }
  /// Fetches the pages of these parts that are not there, by few requests. Throws Error and
  /// Stopped.
  void need(std::span<const std::span<const std::byte>> parts);
  /// Frees the memory of a part until the next read.
  void release(std::span<const std::byte> part) const;

 private:
  std::shared_ptr<const RemoteFile> object_;
  File file_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0, page_ = 0;
  std::mutex mutex_;         // guards there_
  std::vector<bool> there_;  // by page
};

/// Maps a safetensors file at an address, and fetches its header. Throws Error.
std::unique_ptr<LazyMap> map_safetensors(const std::string& address);

/// Returns whether there is a LazyMap in this process.
bool has_lazy_maps();
/// Calls need() for the parts that lie in a LazyMap. Other memory is left as it is.
void need_bytes(std::span<const std::span<const std::byte>> parts);
void need_bytes(std::span<const std::byte> part);

}  // namespace vfm::io

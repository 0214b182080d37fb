// Copies of objects on a local disk, for what is read again and again or must be mapped: index
// files, shards of a training set, weights. Shared by all processes of a node.
//
// VFM_CACHE=DIR:SIZE (such as /scratch/vfm:200GB) or set_cache() names it. Copies are named by the
// object's address and version, so an object that changes has another copy. One process fetches an
// object, the others wait for it (flock, which the kernel ends with its holder). A copy appears by
// a rename, so kills leave only files that the next program removes. What was used least recently
// goes when the copies exceed SIZE. A copy that is open or mapped stays readable after that.
// Without a cache, copies are files without names in TMPDIR, for this process alone.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "io/file.h"

namespace vfm::io {

/// Sets the cache of this process. `text` is DIR:SIZE. Throws Error{usage} for another text.
void set_cache(const std::string& text);

/// Returns an open copy of an object's whole contents. Throws Error, also if the copy cannot be
/// written. `path()` of the result is the address.
File cached_copy(const std::string& address);

/// Reads parts of an object through the cache, in blocks of 8 MiB, each read once from the store.
/// Without a cache, reads the ranges themselves.
class CachedFile {
 public:
  static std::shared_ptr<CachedFile> open(const std::string& address);
  virtual ~CachedFile() = default;
  virtual std::uint64_t size() const = 0;
  virtual void pread_exact(void* out, std::size_t size, std::uint64_t offset) const = 0;
};

}  // namespace vfm::io

// An object that is written: it appears whole, or not at all.
//
// Up to one part (16 MiB, more for objects over 94 GiB) is held and put at once by one request.
// Larger objects go by a multipart upload, whose parts are sent while the caller writes the next,
// at most `ahead` bytes at a time, each with a CRC32C that the server checks. commit() completes
// it. What is 64 MiB or more in one call of write() is sent from the caller's memory before write()
// returns. An object of one request has its XXH3-128 as metadata ("vfm-xxh3"). That of a multipart
// upload would have to be known at its begin. Failed requests are sent again as those of
// RemoteFile are. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace vfm::io {

class ObjectUpload {
 public:
  /// Sends nothing. Throws Error{usage} if nothing can be written at `address`.
  explicit ObjectUpload(const std::string& address, std::size_t ahead = std::size_t{64} << 20);
  /// Calls abandon() if the object was not committed.
  ~ObjectUpload();
  ObjectUpload(ObjectUpload&&) noexcept;
  ObjectUpload& operator=(ObjectUpload&&) noexcept;

  const std::string& address() const;
  void write(const void* data, std::size_t size);
  std::uint64_t bytes_written() const;
  /// Completes the object. Returns its version (ETag). Throws Error, and then the older object of
  /// this address is unchanged.
  std::string commit();
  /// Completes the object if the object of this address has `version`, or if there is none and
  /// `version` is empty. Returns the new version, or nullopt if another program was first.
  std::optional<std::string> commit_over(const std::string& version);
  /// Returns whether no object of this address has these bytes. Compares the size and the stored
  /// XXH3-128. An object without that hash, of many parts or of another writer, counts as
  /// different.
  bool differs() const;
  void abandon() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Writes a whole object. Throws Error.
void write_object(const std::string& address, std::string_view contents);
/// Tells that this process writes below `folder`, and ends there what killed programs left
/// (io/remote/left_writes.h): multipart uploads, which cost money and are seen by nobody. Returns
/// the number of uploads. Those of living processes are not touched. Throws Error.
int end_left_uploads_below(const std::string& folder);

}  // namespace vfm::io

// Objects that one piece of work reads more than once, as a shard is hashed, looked through and
// used.
//
// While a KeptObjects names an object, this process asks for its size and version once. What is
// read from its beginning on is kept in a file without a name in TMPDIR, and later reads come from
// there. So the store sends each byte once. All objects that are kept have at most 16 GiB, and a
// quarter of what is free in TMPDIR, or 64 MiB if that is in memory (tmpfs). An object for which
// there is no room is read from the store again. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "io/file.h"

namespace vfm::io {

/// The bytes of an object up to count(). Under KeptObjects and io/remote.
class KeptBytes {
 public:
  explicit KeptBytes(std::uint64_t room) : room_(room) {}
  ~KeptBytes();
  KeptBytes(const KeptBytes&) = delete;
  KeptBytes& operator=(const KeptBytes&) = delete;

  /// Adds what follows the bytes that are there. Other bytes, and those that cannot be written, are
  /// left out.
  void add(std::span<const char> bytes, std::uint64_t offset);
  /// Reads up to `size` bytes that are there, and returns their number.
  std::size_t read_some(void* out, std::size_t size, std::uint64_t offset) const;
  std::uint64_t count() const { return count_; }

 private:
  const std::uint64_t room_;  // of all objects that are kept, this one's part
  std::mutex mutex_;
  File file_;  // opened before count_ is over 0
  bool full_ = false;
  std::atomic<std::uint64_t> count_{0};
};

class KeptObjects {
 public:
  /// Sends nothing. Paths that are no addresses are left out.
  explicit KeptObjects(const std::vector<std::string>& paths);
  ~KeptObjects();
  KeptObjects(const KeptObjects&) = delete;
  KeptObjects& operator=(const KeptObjects&) = delete;

  /// Lets the object be opened anew, as it is not as it should be.
  static void forget(const std::string& path);

  /// For RemoteFile::open_if_there(). find() returns an object that was opened and is named, or
  /// null. room_for() returns null if the object is not named, or too large.
  static std::shared_ptr<RemoteFile> find(const std::string& address);
  static std::shared_ptr<KeptBytes> room_for(const std::string& address, std::uint64_t bytes);
  static void opened(const std::string& address, std::shared_ptr<RemoteFile> object);

 private:
  std::vector<std::string> addresses_;
};

}  // namespace vfm::io

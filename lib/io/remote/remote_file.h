// An object that is read: its size and version, ranges of its bytes, and its bytes in order.
//
// A request that fails with 429, 500, 502, 503, 504, a reset, a time-out or too few bytes is sent
// again, after a pause that doubles and has a random part, or after the server's Retry-After. The
// answer must have the length that was asked for and the ETag that open() saw. Connections are
// kept. A stop (base/stop.h) ends each wait. VFM_NET_SECONDS (120) is the time after which a
// request is given up. Errors name the address, the server's code and what to do.
// Thread-safety: any thread for RemoteFile, one thread at a time for each RemoteReader.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vfm::io {

class RemoteFile {
 public:
  /// Asks for the size and the version. Throws Error ("cannot open 's3://b/k': no such object").
  static std::shared_ptr<RemoteFile> open(const std::string& address);
  /// As open(), but returns null if there is no such object.
  static std::shared_ptr<RemoteFile> open_if_there(const std::string& address);
  virtual ~RemoteFile() = default;

  virtual const std::string& address() const = 0;
  virtual std::uint64_t size() const = 0;
  /// The ETag, which differs if the contents differ. Empty if the server gives none.
  virtual const std::string& version() const = 0;
  /// XXH3-128 of the contents, 32 hex digits, which the writer stored with the object (upload.h),
  /// or empty.
  virtual const std::string& stored_hash() const = 0;
  /// Whether the server answers requests for ranges. If not, only a RemoteReader from the begin
  /// on can read the object.
  virtual bool has_ranges() const = 0;

  /// Reads exactly `size` bytes at `offset`, by several requests at once if there are many. Throws
  /// Error if the object ends earlier, has changed or has been removed.
  virtual void pread_exact(void* out, std::size_t size, std::uint64_t offset) const = 0;

  struct Range {
    std::uint64_t offset;
    std::span<std::byte> out;
  };
  /// Reads many ranges by as few requests as are sensible: ranges that lie near each other come by
  /// one. `done`, if given, is called in any thread with the index of each range that is there.
  virtual void pread_all(std::span<const Range> ranges,
                         const std::function<void(std::size_t)>& done = nullptr) const = 0;
};

/// The bytes of an object in order, with read-ahead.
class RemoteReader {
 public:
  /// At most `ahead` bytes are held that were not read yet. Their requests are under way at once.
  /// `waiting`, if given, is called again and again while a read waits for the server.
  explicit RemoteReader(std::shared_ptr<RemoteFile> file,
                        std::size_t ahead = std::size_t{32} << 20,
                        std::function<void()> waiting = nullptr);
  ~RemoteReader();
  RemoteReader(RemoteReader&&) noexcept;

  const RemoteFile& file() const;
  /// Reads up to `size` bytes from the position on. Returns 0 at the end. Throws Error and Stopped.
  std::size_t read_some(void* out, std::size_t size);
  /// Sets the position. What is held from there on is kept. Small jumps ahead read what lies
  /// between. Read-ahead begins small after a far jump, and grows with what is read in order.
  void seek(std::uint64_t position);
  std::uint64_t position() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Gives up reads for which nothing has come for `seconds`, if VFM_NET_SECONDS is not less. 0: no
/// such limit.
void limit_read_seconds(double seconds);

/// Returns the contents of an object. Throws Error{limit} if it has more than `most` bytes.
std::string read_object(const std::string& address, std::uint64_t most = UINT64_MAX);

}  // namespace vfm::io

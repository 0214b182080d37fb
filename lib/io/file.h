// Opens, reads, writes and maps files, and splits paths. Every error names the path.
//
// A path may be an address (io/remote/address.h). Objects are read as files are. They are written
// by AtomicFile (io/atomic_file.h) alone. Thread-safety: pread_exact() and reads of a MappedFile
// from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace vfm::io {

class RemoteFile;
class RemoteReader;

/// An open descriptor, or an object that is read. Closed by the destructor. Move only.
class File {
 public:
  File() = default;
  /// Takes ownership of `fd`.
  File(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  /// Opens a file. If `path` is a named pipe, waits for its writer. Throws Error ("cannot open
  /// 'PATH': ...") if opening fails or the path is a directory. Throws Stopped after a stop.
  static File open_read(const std::string& path);
  /// Opens a regular file or an object. Throws Error for a pipe or device.
  static File open_regular(const std::string& path);
  /// Reads an object that was opened.
  static File of(std::shared_ptr<RemoteFile> object);

  /// Must not be called if remote() is set.
  int fd() const;
  /// Returns the object that is read, or null for a descriptor.
  const RemoteFile* remote() const;
  const std::string& path() const { return path_; }
  explicit operator bool() const { return fd_ >= 0 || reader_; }
  std::uint64_t size() const;
  /// Reads exactly `size` bytes at `offset`. Throws Error if the file ends earlier.
  void pread_exact(void* out, std::size_t size, std::uint64_t offset) const;
  /// Reads up to `size` bytes from the current position, and returns the number of bytes. Returns 0
  /// at the end. Throws Stopped after a stop. Continues after other signals.
  std::size_t read_some(void* out, std::size_t size);
  /// Sets the position of read_some(). Throws Error for a pipe.
  void seek(std::uint64_t position);
  /// Writes all bytes to a descriptor. Throws the errors of throw_output_error()
  /// (base/full_disk.h).
  void write_all(const void* data, std::size_t size);
  void close();

 private:
  int fd_ = -1;
  std::shared_ptr<RemoteReader> reader_;  // Never shared. Its class is not complete here.
  std::string path_;
};

/// A read-only memory map of a regular file, or of a copy of an object (io/file_cache.h). The map
/// of an empty file is an empty span.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::string& path() const { return path_; }
  /// If `part` lies in this map, frees the memory of `part` until the next read. Throws Error if
  /// the file has become shorter.
  void release(std::span<const std::byte> part) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string path_;
};

/// Returns the contents of a regular file or an object. Throws Error. Throws Error{limit} if the
/// file has more than `most` bytes, or grows to more during the call.
std::string read_file(const std::string& path, std::uint64_t most = UINT64_MAX);
/// Size limit of a model's JSON files in bytes.
inline constexpr std::uint64_t kMostModelJson = std::uint64_t{64} << 20;
/// Returns the contents of a file or pipe, read to the end. Throws Error.
std::string read_stream(const std::string& path);
/// Returns whether a file, folder, pipe or device of this path exists, or an object of this
/// address. Folders of buckets: is_folder() (io/folder.h). Throws Error if a server does not tell.
bool file_exists(const std::string& path);
/// Returns the XXH3-128 of a regular file's contents as 32 hex digits. Of an object, returns the
/// hash that its writer stored, if there is one. Throws Error and Stopped.
std::string hash_file(const std::string& path);
/// Returns the XXH3-128 of an open file's contents from the current position on.
std::string hash_file(File& file);
/// Makes the directory and its parents, durably. Throws Error. A bucket needs no folders. There,
/// the first call for a folder ends uploads that killed programs left below it.
void make_directories(const std::string& path);

/// Return parts of a path. base_name("a/b.tar") is "b.tar". dir_name("a/b.tar") is "a" ("." without
/// a slash; of a bucket, the bucket). stem("a/b.tar") is "b" (up to the first dot).
/// extension("a/B.MP4") is "mp4" (after the last dot, in lower case).
std::string base_name(std::string_view path);
std::string dir_name(std::string_view path);
std::string stem(std::string_view path);
std::string extension(std::string_view path);
/// Returns the path of a name in a directory. Returns a name that begins with "/", or is an
/// address, unchanged.
std::string join_path(std::string_view directory, std::string_view name);
/// Returns whether `path` is a URL, such as "http://..." or "s3://...".
bool is_url(std::string_view path);

}  // namespace vfm::io

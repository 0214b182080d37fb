// Local files: open descriptors, whole contents, memory maps; and parts of paths. Every error names
// the path. Thread-safety: pread_exact and MappedFile reads from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vfm::io {

/// An open descriptor that its destructor closes. Move only.
class File {
 public:
  File() = default;
  /// Takes over `fd`.
  File(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  /// Throws Error "cannot open 'PATH': ..."; a directory is refused ("Is a directory"). Waits for
  /// the writer of a named pipe. Throws Stopped after a stop.
  static File open_read(const std::string& path);
  /// Opens only a regular file, no pipe and no device. Throws Error.
  static File open_regular(const std::string& path);

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  explicit operator bool() const { return fd_ >= 0; }
  std::uint64_t size() const;
  /// Reads exactly `size` bytes at `offset`; throws Error if the file ends before.
  void pread_exact(void* out, std::size_t size, std::uint64_t offset) const;
  /// Reads up to `size` bytes from the current position; returns 0 at the end. Retries after
  /// signals, but throws Stopped after a stop.
  std::size_t read_some(void* out, std::size_t size);
  /// Writes all bytes. Throws as throw_output_error() does (base/full_disk.h).
  void write_all(const void* data, std::size_t size);
  void close();

 private:
  int fd_ = -1;
  std::string path_;
};

/// A read-only memory map of a regular file. An empty file maps to an empty span.
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
  /// Frees the memory of `part`, if it lies in this map, until it is read again. Throws Error if
  /// the file has become shorter.
  void release(std::span<const std::byte> part) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string path_;
};

/// Returns the contents of a regular file. Throws Error; Error{limit} if the file has more than
/// `most` bytes, or grows beyond `most` while it is read.
std::string read_file(const std::string& path, std::uint64_t most = UINT64_MAX);
/// Most bytes of a JSON file of a model; the largest files, tokenizer.json, have some 30 million.
inline constexpr std::uint64_t kMostModelJson = std::uint64_t{64} << 20;
/// Reads a file or a pipe to its end. Throws Error.
std::string read_stream(const std::string& path);
bool file_exists(const std::string& path);
/// Returns the XXH3-128 of the contents of a regular file as 32 hex digits. Throws Error; Stopped.
std::string hash_file(const std::string& path);
/// Returns the same hash of an open file, from its current position on.
std::string hash_file(File& file);
/// Makes the directory and its parents. Throws Error.
void make_directories(const std::string& path);

/// Return parts of a path, in this order: "a/b.tar" -> "b.tar"; "a/b.tar" -> "a" ("." without a
/// slash); "a/b.tar" -> "b" (up to the first dot); "a/B.MP4" -> "mp4" (after the last dot, lower
/// case).
std::string base_name(std::string_view path);
std::string dir_name(std::string_view path);
std::string stem(std::string_view path);
std::string extension(std::string_view path);
std::string join_path(std::string_view directory, std::string_view name);
/// Returns whether `path` is a URL, such as "http://..." or "s3://...".
bool is_url(std::string_view path);

}  // namespace vfm::io

// Files: RAII over descriptors, whole-file reads, memory maps. Local paths only.
// Every error names the path. Thread-safety: pread_exact and MappedFile reads from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vfm::io {

/// An open descriptor, closed at the end. Move only.
class File {
 public:
  File() = default;
  /// Takes over `fd`.
  File(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  /// Throws Error "cannot open 'PATH': ..."; a directory is refused ("Is a directory"). Waits for
  /// the writer of a pipe, but throws Stopped when a signal asked to stop.
  static File open_read(const std::string& path);
  /// Opens only regular files: opening a pipe would wait for a writer, and a device may never end.
  /// Throws Error.
  static File open_regular(const std::string& path);

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  explicit operator bool() const { return fd_ >= 0; }
  std::uint64_t size() const;
  /// Reads exactly `size` bytes at `offset`; throws Error when the file ends before.
  void pread_exact(void* out, std::size_t size, std::uint64_t offset) const;
  /// Up to `size` bytes from the current position; 0 at the end. Retries after signals, but throws
  /// Stopped when one asked to stop.
  std::size_t read_some(void* out, std::size_t size);
  /// Writes all of it; a full disk or a closed pipe is an Error.
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
  /// Frees the memory of `part`, if it is of this file, until it is read again. Throws Error if the
  /// file has become shorter meanwhile.
  void release(std::span<const std::byte> part) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string path_;
};

/// The contents of a regular file. Throws Error; Error{limit} if it is, or becomes while read,
/// larger than `most`.
std::string read_file(const std::string& path, std::uint64_t most = UINT64_MAX);
/// Bytes of a JSON file that comes with a model: the largest, tokenizer.json, have some 30 million.
inline constexpr std::uint64_t kMostModelJson = std::uint64_t{64} << 20;
/// Reads a file or a pipe to its end. Throws Error.
std::string read_stream(const std::string& path);
bool file_exists(const std::string& path);
/// XXH3-128 of the contents of a regular file, 32 hex digits. Throws Error; Stopped when asked to
/// stop.
std::string hash_file(const std::string& path);
/// The same for an open file, from its current position on.
std::string hash_file(File& file);
/// Makes the directory and its parents. Throws Error.
void make_directories(const std::string& path);

/// "a/b.tar" -> "b.tar"; "a/b.tar" -> "a" ("." if there is none); "a/b.tar" -> "b" (first dot on);
/// "a/B.MP4" -> "mp4" (last dot, lower case).
std::string base_name(std::string_view path);
std::string dir_name(std::string_view path);
std::string stem(std::string_view path);
std::string extension(std::string_view path);
std::string join_path(std::string_view directory, std::string_view name);
/// "http://...", "s3://...": not a local path.
bool is_url(std::string_view path);

}  // namespace vfm::io

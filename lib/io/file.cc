// SPDX-License-Identifier: Apache-2.0
#include "io/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/error.h"
#include "base/full_disk.h"
#include "base/hash.h"
#include "base/lfs_pointer.h"
#include "base/stop.h"
#include "base/units.h"
#include "io/atomic_file.h"
#include "io/file_cache.h"
#include "io/folder.h"
#include "io/mapping_list.h"
#include "io/remote/address.h"
#include "io/remote/remote_file.h"

namespace vfm::io {

namespace {

constexpr int kStopCheckMilliseconds = 100;

/// Waits until a read cannot block. Signals do not interrupt threads that read (cli/signals.h), so
/// a blocked read could not be stopped. Regular files and closed pipes are always ready.
void wait_until_readable(int fd) {
  pollfd ready{fd, POLLIN, 0};
  while (::poll(&ready, 1, kStopCheckMilliseconds) == 0)
    check_stop();
}

/// The system ends a name at a NUL, and would open another file. JSON can contain such a name.
void refuse_no_name(const std::string& path) {
  refuse_address(path);
  const std::size_t nul = path.find('\0');
  if (nul == std::string::npos) return;
  fail_as(Cause::open, "cannot open '{}\\0{}': no name of a file holds a NUL", path.substr(0, nul),
          std::string_view(path).substr(nul + 1));
}

void refuse_pointer(const File& file, const struct stat& info) {
  if (!S_ISREG(info.st_mode) || info.st_size > static_cast<off_t>(kMostLfsPointer)) return;
  char head[32];
  const ssize_t got = ::pread(file.fd(), head, sizeof head, 0);
  if (got > 0) refuse_lfs_pointer(file.path(), {head, static_cast<std::size_t>(got)});
}

/// Counts the bytes that it reads, because files in /proc have size 0, and other files may grow.
std::string read_all(File file, std::uint64_t most) {
  std::string text;
  std::vector<char> buffer(1 << 16);
  while (const std::size_t got = file.read_some(buffer.data(), buffer.size())) {
    if (got > most - text.size())
      fail_as(Cause::limit, "'{}' has more than {}, the most that is read", file.path(),
              format_bytes(static_cast<double>(most)));
    text.append(buffer.data(), got);
  }
  return text;
}

/// The hashes of objects that this process has read, by address and version. A work in parts asks
/// for them twice.
class KnownHashes {
 public:
  std::string find(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = hashes_.find(name);
    return found == hashes_.end() ? "" : found->second;
  }
  void add(const std::string& name, const std::string& hash) {
    constexpr std::size_t kMost = 1 << 16;  // about 10 MB
    const std::lock_guard lock(mutex_);
    if (hashes_.size() < kMost) hashes_.emplace(name, hash);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::string> hashes_;
};

/// Hashes an object from the begin on.
std::string hash_object(File& file) {
  static auto& known = *new KnownHashes;  // used until the process ends
  const RemoteFile& object = *file.remote();
  if (!object.stored_hash().empty()) return object.stored_hash();
  if (object.version().empty()) return hash_file(file);
  const std::string name =
      hash_hex(object.address() + "\n" + object.version() + "\n" + std::to_string(object.size()));
  std::string hash = known.find(name);
  if (!hash.empty()) return hash;
  hash = hash_file(file);
  known.add(name, hash);
  return hash;
}

}  // namespace

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}
File::File(File&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      reader_(std::move(other.reader_)),
      path_(std::move(other.path_)) {}
File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(reader_, other.reader_);
  std::swap(path_, other.path_);
  return *this;
}

int File::fd() const {
  if (reader_) fail("'{}' has no descriptor, since it is an address", path_);
  return fd_;
}

const RemoteFile* File::remote() const {
  return reader_ ? &reader_->file() : nullptr;
}

File File::open_read(const std::string& path) {
  refuse_no_name(path);
  if (is_remote(path)) {
    File file(-1, path);
    file.reader_ = std::make_shared<RemoteReader>(RemoteFile::open(path));
    return file;
  }
  // open() does not wait for the writer of a pipe. wait_until_readable() does, and can be stopped.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail_errno(errno, "cannot open '{}'", path);
  File file(fd, path);
  struct stat info {};
  if (::fstat(fd, &info) != 0) fail_errno(errno, "cannot read '{}'", path);
  if (S_ISDIR(info.st_mode)) fail_errno(EISDIR, "cannot open '{}'", path);
  if (S_ISFIFO(info.st_mode)) wait_until_readable(fd);
  refuse_pointer(file, info);
  ::fcntl(fd, F_SETFL, 0);
  return file;
}

File File::open_regular(const std::string& path) {
  if (is_remote(path)) return open_read(path);
  refuse_no_name(path);
  struct stat info {};
  // Checked before open(), because opening a pipe or a device can have lasting effects.
  if (::stat(path.c_str(), &info) != 0) fail_errno(errno, "cannot open '{}'", path);
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
    fail_as(Cause::open, "'{}' is a pipe or a device, not a regular file: save it as one first",
            path);
  return open_read(path);
}

File File::of(std::shared_ptr<RemoteFile> object) {
  File file(-1, object->address());
  file.reader_ = std::make_shared<RemoteReader>(std::move(object));
  return file;
}

std::uint64_t File::size() const {
  if (reader_) return reader_->file().size();
  struct stat info {};
  if (::fstat(fd_, &info) != 0) fail_errno(errno, "cannot read '{}'", path_);
  return static_cast<std::uint64_t>(info.st_size);
}

void File::pread_exact(void* out, std::size_t size, std::uint64_t offset) const {
  if (reader_) return reader_->file().pread_exact(out, size, offset);
  auto* to = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t got = ::pread(fd_, to, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno(errno, "cannot read '{}'", path_);
    if (got == 0)
      fail("'{}' is truncated: it ends at byte {}, {} more were expected", path_, offset, size);
    to += got;
    offset += static_cast<std::uint64_t>(got);
    size -= static_cast<std::size_t>(got);
  }
}

std::size_t File::read_some(void* out, std::size_t size) {
  if (reader_) return reader_->read_some(out, size);
  for (;;) {
    wait_until_readable(fd_);
    const ssize_t got = ::read(fd_, out, size);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) fail_errno(errno, "cannot read '{}'", path_);
    check_stop();
  }
}

void File::seek(std::uint64_t position) {
  if (reader_) return reader_->seek(position);
  if (::lseek(fd_, static_cast<off_t>(position), SEEK_SET) < 0)
    fail_errno(errno, "cannot read '{}'", path_);
}

void File::write_all(const void* data, std::size_t size) {
  const int to = fd();
  const auto* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t put = ::write(to, from, size);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_output(errno, "cannot write '{}'", path_);
    from += put;
    size -= static_cast<std::size_t>(put);
  }
}

void File::close() {
  reader_.reset();
  if (fd_ < 0) return;
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0 && errno != EINTR) fail_output(errno, "cannot write '{}'", path_);
}

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const File file = is_remote(path) ? cached_copy(path) : File::open_regular(path);
  size_ = file.size();
  if (size_ == 0) return;
  void* map = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd(), 0);
  if (map == MAP_FAILED) fail_errno(errno, "cannot map '{}'", path);
  data_ = static_cast<const std::byte*>(map);
  note_mapping(map, size_, path_);
}
MappedFile::~MappedFile() {
  if (!data_) return;
  forget_mapping(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}
void MappedFile::release(std::span<const std::byte> part) const {
  if (part.empty() || part.data() < data_ || part.data() >= data_ + size_) return;
  // If the file was cut after it was mapped, the rest of its last page was read as zeros. A read
  // beyond that page has ended the process (SIGBUS).
  struct stat now {};
  if (::stat(path_.c_str(), &now) == 0 && static_cast<std::size_t>(now.st_size) < size_)
    fail("'{}' was cut to {} bytes while it was read", path_, now.st_size);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t before = static_cast<std::size_t>(part.data() - data_) % page;
  // This is only a hint. Other data on the same pages is read again.
  ::madvise(const_cast<std::byte*>(part.data()) - before, part.size() + before, MADV_DONTNEED);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      path_(std::move(other.path_)) {}
MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

std::string read_file(const std::string& path, std::uint64_t most) {
  if (is_remote(path)) return read_object(path, most);
  File file = File::open_regular(path);
  if (file.size() > most)
    fail_as(Cause::limit, "'{}' has {}, and at most {} are read", path,
            format_bytes(static_cast<double>(file.size())),
            format_bytes(static_cast<double>(most)));
  return read_all(std::move(file), most);
}

std::string read_stream(const std::string& path) {
  return read_all(File::open_read(path), UINT64_MAX);
}

bool file_exists(const std::string& path) {
  if (is_remote(path)) return is_file(path);
  struct stat info {};
  return path.find('\0') == std::string::npos && ::stat(path.c_str(), &info) == 0;
}

std::string hash_file(const std::string& path) {
  File file = File::open_regular(path);
  return file.remote() ? hash_object(file) : hash_file(file);
}

std::string hash_file(File& file) {
  Hasher hasher;
  std::vector<char> buffer(1 << 20);
  while (const std::size_t got = file.read_some(buffer.data(), buffer.size())) {
    hasher.update(buffer.data(), got);
    check_stop();
  }
  return hasher.hex128();
}

void make_directories(const std::string& path) {
  if (is_bucket(path)) return end_left_uploads(path);
  if (is_remote(path))
    fail_usage("nothing can be written below '{}'; give a path, or an address of a bucket", path);
  refuse_address(path);
  std::vector<std::string> changed;  // folders that get a new one, the innermost first
  for (std::string at = path; !file_exists(at); at = changed.back())
    changed.push_back(dir_name(at));
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail_output(error.value(), "cannot create directory '{}'", path);
  for (auto folder = changed.rbegin(); folder != changed.rend(); ++folder)
    sync_directory(*folder);
}

std::string base_name(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/'))
    path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string dir_name(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/'))
    path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  if (is_remote(path) && slash <= path.find("://") + 2) return std::string(path);
  if (slash == std::string_view::npos) return ".";
  return std::string(slash == 0 ? "/" : path.substr(0, slash));
}

std::string stem(std::string_view path) {
  const std::string name = base_name(path);
  return name.substr(0, name.find('.', 1));
}

std::string extension(std::string_view path) {
  const std::string name = base_name(path);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return {};
  std::string ext = name.substr(dot + 1);
  for (char& c : ext)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ext;
}

std::string join_path(std::string_view directory, std::string_view name) {
  if (directory.empty() || directory == "." || name.starts_with('/') || is_remote(name))
    return std::string(name);
  std::string path(directory);
  if (!path.ends_with('/')) path += '/';
  return path.append(name);
}

bool is_url(std::string_view path) {
  return !url_scheme(path).empty();
}

}  // namespace vfm::io

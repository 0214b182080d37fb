// SPDX-License-Identifier: Apache-2.0
#include "io/file_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/hash.h"
#include "base/stop.h"
#include "base/units.h"
#include "io/scratch_file.h"

namespace vfm::io {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBlock = std::uint64_t{8} << 20;
constexpr std::size_t kCopiedAtOnce = std::size_t{1} << 20;
/// Has the number of bytes of all copies, or more: whoever adds one counts it before it is there.
constexpr const char* kLedger = ".vfm-cache";

/// Waits for a lock on an open file. A file system without locks is used without one.
void wait_for_lock(int fd) {
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return;
    check_stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

File open_cache_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) fail_output(errno, "cannot create '{}'", path);
  return {fd, path};
}

/// Whether another program has removed or renamed the file behind `fd`.
bool has_lost_name(const std::string& path, int fd) {
  struct stat by_name {
  }, by_fd{};
  return ::stat(path.c_str(), &by_name) != 0 || ::fstat(fd, &by_fd) != 0 ||
         by_name.st_ino != by_fd.st_ino || by_name.st_dev != by_fd.st_dev;
}

bool is_copy_name(std::string_view name) {
  return name.size() == 32 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// NAME of ".NAME.tmp", a copy that is being made; else "".
std::string_view unfinished_copy(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(".tmp")) return {};
  name.remove_prefix(1);
  name.remove_suffix(4);
  return is_copy_name(name) ? name : std::string_view();
}

/// Removes a file that a killed program left. One that is being written is locked, and stays.
bool remove_if_left(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return errno == ENOENT;
  const File file(fd, path);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return false;
  return has_lost_name(path, fd) || ::unlink(path.c_str()) == 0;
}

File open_if_whole(const std::string& path, std::uint64_t bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) return {};
  if (fd < 0) fail_errno(errno, "cannot open '{}'", path);
  File file(fd, path);
  if (file.size() != bytes) {  // what another program has cut
    ::unlink(path.c_str());
    return {};
  }
  const timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
  ::futimens(fd, now);  // when it was used; of another user's file this may fail
  return file;
}

/// Locks the temporary file of a copy, which this makes empty.
File lock_unfinished(const std::string& path) {
  for (;;) {
    File file = open_cache_file(path);
    wait_for_lock(file.fd());
    if (has_lost_name(path, file.fd())) continue;
    if (::ftruncate(file.fd(), 0) != 0) fail_output(errno, "cannot write '{}'", path);
    return file;
  }
}

std::mutex g_cache_mutex;  // guards the name and the folder
std::string g_cache_text;
std::shared_ptr<const CopyFolder> g_cache;

struct CacheName {
  std::string folder;
  std::uint64_t bytes = 0;
};

CacheName parse_cache(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    fail_usage("the cache '{}' is not DIR:SIZE, such as /scratch/vfm:200GB", text);
  const std::uint64_t bytes = parse_bytes(std::string_view(text).substr(colon + 1));
  if (bytes == 0) fail_usage("the cache '{}' has no bytes", text);
  return {text.substr(0, colon), bytes};
}

/// The cache of this process, or null.
std::shared_ptr<const CopyFolder> cache_in_use() {
  const std::lock_guard lock(g_cache_mutex);
  if (!g_cache && !g_cache_text.empty()) {
    CacheName name = parse_cache(g_cache_text);
    g_cache = std::make_shared<const CopyFolder>(std::move(name.folder), name.bytes);
  }
  return g_cache;
}

/// The name of the copy of an object, or of its block of this number. `version` is not empty.
std::string name_of_copy(const RemoteFile& file, std::optional<std::uint64_t> block) {
  std::string text = file.address() + "\n" + file.version() + "\n" + std::to_string(file.size());
  if (block) text += "\nblock " + std::to_string(*block);
  return hash_hex(text);
}

void copy_object(const std::shared_ptr<RemoteFile>& object, File& to) {
  RemoteReader reader(object);
  const auto buffer = std::make_unique_for_overwrite<char[]>(kCopiedAtOnce);
  while (const std::size_t got = reader.read_some(buffer.get(), kCopiedAtOnce))
    to.write_all(buffer.get(), got);
}

/// Another descriptor of the file with this name in messages, at the beginning of its bytes.
File from_begin(const File& file, std::string name) {
  const int fd = ::fcntl(file.fd(), F_DUPFD_CLOEXEC, 0);
  if (fd < 0) fail_errno(errno, "cannot open '{}'", file.path());
  File begin(fd, std::move(name));
  if (::lseek(fd, 0, SEEK_SET) != 0) fail_errno(errno, "cannot read '{}'", file.path());
  return begin;
}

class UncachedFile final : public CachedFile {
 public:
  explicit UncachedFile(std::shared_ptr<RemoteFile> file) : file_(std::move(file)) {}
  std::uint64_t size() const override { return file_->size(); }
  void pread_exact(void* out, std::size_t size, std::uint64_t offset) const override {
    file_->pread_exact(out, size, offset);
  }
  void pread_all(std::span<const RemoteFile::Range> ranges,
                 const std::function<void(std::size_t)>& done) const override {
    file_->pread_all(ranges, done);
  }

 private:
  std::shared_ptr<RemoteFile> file_;
};

class BlockFile final : public CachedFile {
 public:
  BlockFile(std::shared_ptr<RemoteFile> file, std::shared_ptr<const CopyFolder> cache)
      : file_(std::move(file)), cache_(std::move(cache)) {}

  std::uint64_t size() const override { return file_->size(); }

  void pread_exact(void* out, std::size_t size, std::uint64_t offset) const override {
    if (offset > file_->size() || size > file_->size() - offset)
      fail("'{}' is truncated: it ends at byte {}", file_->address(), file_->size());
    auto* to = static_cast<char*>(out);
    while (size > 0) {
      const std::uint64_t block = offset / kBlock, at = offset % kBlock;
      const std::size_t part = std::min<std::uint64_t>(size, kBlock - at);
      copy_of(block).pread_exact(to, part, at);
      to += part;
      offset += part;
      size -= part;
    }
  }

  void pread_all(std::span<const RemoteFile::Range> ranges,
                 const std::function<void(std::size_t)>& done) const override {
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      pread_exact(ranges[i].out.data(), ranges[i].out.size(), ranges[i].offset);
      if (done) done(i);
    }
  }

 private:
  File copy_of(std::uint64_t block) const {
    const std::uint64_t begin = block * kBlock;
    const std::uint64_t bytes = std::min(kBlock, file_->size() - begin);
    return cache_->copy(name_of_copy(*file_, block), bytes, [&](File& to) {
      const auto buffer = std::make_unique_for_overwrite<char[]>(bytes);
      file_->pread_exact(buffer.get(), bytes, begin);
      to.write_all(buffer.get(), bytes);
    });
  }

  std::shared_ptr<RemoteFile> file_;
  std::shared_ptr<const CopyFolder> cache_;
};

}  // namespace

CopyFolder::CopyFolder(std::string folder, std::uint64_t most_bytes)
    : folder_(std::move(folder)), most_(most_bytes) {
  make_directories(folder_);
  const File ledger = open_cache_file(join_path(folder_, kLedger));
  wait_for_lock(ledger.fd());
  const std::uint64_t bytes = remove_oldest();
  if (::pwrite(ledger.fd(), &bytes, sizeof bytes, 0) != sizeof bytes)
    fail_output(errno, "cannot write '{}'", ledger.path());
}

/// Counts a copy whose temporary file is there, with its whole size.
void CopyFolder::make_room(std::uint64_t bytes) const {
  const File ledger = open_cache_file(join_path(folder_, kLedger));
  wait_for_lock(ledger.fd());
  std::uint64_t sum = 0;
  if (::pread(ledger.fd(), &sum, sizeof sum, 0) != sizeof sum) sum = most_;
  sum = sum > most_ || bytes > most_ - sum ? remove_oldest() : sum + bytes;
  if (::pwrite(ledger.fd(), &sum, sizeof sum, 0) != sizeof sum)
    fail_output(errno, "cannot write '{}'", ledger.path());
}

/// Removes copies if there are too many bytes, and what killed programs left. Returns the bytes
/// that remain.
std::uint64_t CopyFolder::remove_oldest() const {
  struct Copy {
    timespec used{};
    std::uint64_t bytes = 0;
    std::string path;
  };
  std::vector<Copy> copies;
  std::uint64_t sum = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    const bool unfinished = !unfinished_copy(name).empty();
    struct stat facts {};
    if ((!unfinished && !is_copy_name(name)) || ::lstat(entry.path().c_str(), &facts) != 0 ||
        !S_ISREG(facts.st_mode))
      continue;
    if (unfinished && remove_if_left(entry.path().string())) continue;
    const auto bytes = static_cast<std::uint64_t>(facts.st_size);
    sum += bytes;
    if (!unfinished) copies.push_back({facts.st_mtim, bytes, entry.path().string()});
  }
  if (sum <= most_) return sum;
  std::ranges::sort(copies, {}, [](const Copy& copy) {
    return std::tuple(copy.used.tv_sec, copy.used.tv_nsec, copy.path);
  });
  for (const Copy& copy : copies) {
    if (sum <= most_ - most_ / 16) break;
    if (::unlink(copy.path.c_str()) != 0 && errno != ENOENT)
      fail_errno(errno, "cannot remove '{}', a copy in the cache", copy.path);
    sum -= copy.bytes;
  }
  return sum;
}

File CopyFolder::copy(const std::string& name, std::uint64_t bytes,
                      const std::function<void(File&)>& fill) const {
  const std::string path = join_path(folder_, name);
  if (File there = open_if_whole(path, bytes)) return there;
  const std::string temporary = join_path(folder_, "." + name + ".tmp");
  File file = lock_unfinished(temporary);
  if (File there = open_if_whole(path, bytes)) {
    ::unlink(temporary.c_str());
    return there;
  }
  try {
    if (::ftruncate(file.fd(), static_cast<off_t>(bytes)) != 0)
      fail_output(errno, "cannot write '{}'", temporary);
    make_room(bytes);
    fill(file);
    const off_t written = ::lseek(file.fd(), 0, SEEK_CUR);
    if (written != static_cast<off_t>(bytes))
      fail("'{}' got {} bytes in place of {}", temporary, written, bytes);
    // After a power failure, a name must not be of other bytes.
    if (::fdatasync(file.fd()) != 0) fail_output(errno, "cannot write '{}'", temporary);
    if (std::rename(temporary.c_str(), path.c_str()) != 0)
      fail_output(errno, "cannot create '{}'", path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  ::flock(file.fd(), LOCK_UN);  // others hold the result open for long
  return from_begin(file, path);
}

void set_cache(const std::string& text) {
  parse_cache(text);
  const std::lock_guard lock(g_cache_mutex);
  g_cache_text = text;
  g_cache = nullptr;
}

bool has_cache() {
  return cache_in_use() != nullptr;
}

File cached_copy(const std::string& address) {
  const std::shared_ptr<RemoteFile> object = RemoteFile::open(address);
  const std::shared_ptr<const CopyFolder> cache = cache_in_use();
  if (!cache || object->version().empty()) {
    const std::string folder = cache ? cache->folder() : fs::temp_directory_path().string();
    File file = open_nameless(folder);
    copy_object(object, file);
    return from_begin(file, address);
  }
  if (object->size() > cache->most_bytes())
    fail("'{}' has {}, more than the whole cache '{}' may hold: name a larger one (VFM_CACHE)",
         address, format_bytes(static_cast<double>(object->size())), cache->folder());
  const File copy = cache->copy(name_of_copy(*object, std::nullopt), object->size(),
                                [&](File& to) { copy_object(object, to); });
  return from_begin(copy, address);
}

std::shared_ptr<CachedFile> CachedFile::open(const std::string& address) {
  return of(RemoteFile::open(address));
}

std::shared_ptr<CachedFile> CachedFile::of(std::shared_ptr<RemoteFile> file) {
  std::shared_ptr<const CopyFolder> cache = cache_in_use();
  if (!cache || file->version().empty()) return std::make_shared<UncachedFile>(std::move(file));
  return std::make_shared<BlockFile>(std::move(file), std::move(cache));
}

}  // namespace vfm::io

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
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/hash.h"
#include "base/stop.h"
#include "base/units.h"
#include "io/block_cache.h"
#include "io/scratch_file.h"

namespace vfm::io {
namespace {

namespace fs = std::filesystem;

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

bool is_blocks_name(std::string_view name) {
  if (!name.ends_with(CopyFolder::kBlocks)) return false;
  name.remove_suffix(CopyFolder::kBlocks.size());
  return is_copy_name(name);
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
std::shared_ptr<BlockCache> g_blocks;

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

/// Makes the cache of this process, if it has one.
void open_cache(const std::lock_guard<std::mutex>& /*of g_cache_mutex*/) {
  if (g_cache || g_cache_text.empty()) return;
  CacheName name = parse_cache(g_cache_text);
  g_cache = std::make_shared<const CopyFolder>(std::move(name.folder), name.bytes);
  g_blocks = std::make_shared<BlockCache>(g_cache);
}

/// The cache of this process, or null.
std::shared_ptr<const CopyFolder> cache_in_use() {
  const std::lock_guard lock(g_cache_mutex);
  open_cache(lock);
  return g_cache;
}
std::shared_ptr<BlockCache> blocks_in_use() {
  const std::lock_guard lock(g_cache_mutex);
  open_cache(lock);
  return g_blocks;
}

/// The name of the copy of an object. `version` is not empty.
std::string name_of_copy(const RemoteFile& file) {
  return hash_hex(file.address() + "\n" + file.version() + "\n" + std::to_string(file.size()));
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
  void pread_all(std::span<const RemoteFile::Range> ranges) const override {
    file_->pread_all(ranges);
  }

 private:
  std::shared_ptr<RemoteFile> file_;
};

class BlockFile final : public CachedFile {
 public:
  BlockFile(std::shared_ptr<RemoteFile> file, std::shared_ptr<BlockCache> cache)
      : file_(std::move(file)), cache_(std::move(cache)), name_(name_of_copy(*file_)) {}

  std::uint64_t size() const override { return file_->size(); }

  void pread_all(std::span<const RemoteFile::Range> ranges) const override {
    std::map<std::uint64_t, std::span<std::byte>> places;  // of blocks, by number
    std::vector<std::unique_ptr<std::byte[]>> borders;     // blocks of which a range has a part
    for (const RemoteFile::Range& range : ranges)
      for_each_block(range, [&](std::uint64_t number) {
        const auto [at, fresh] = places.try_emplace(number);
        if (!fresh) return;
        const std::uint64_t begin = number * kCacheBlock;
        const std::uint64_t size = std::min(kCacheBlock, file_->size() - begin);
        const bool inside =
            begin >= range.offset && begin + size <= range.offset + range.out.size();
        at->second = inside ? range.out.subspan(begin - range.offset, size)
                            : std::span(borders.emplace_back(new std::byte[size]).get(), size);
      });
    std::vector<CachedBlock> blocks;
    for (const auto& [number, bytes] : places)
      blocks.push_back({number, bytes});
    const std::vector<CachedBlock> missing = cache_->read(name_, blocks);
    fetch(missing);
    for (const RemoteFile::Range& range : ranges)
      for_each_block(range,
                     [&](std::uint64_t number) { copy_part(range, number, places[number]); });
    cache_->write(name_, missing);
  }

 private:
  template <class Use>
  void for_each_block(const RemoteFile::Range& range, const Use& use) const {
    const std::uint64_t size = range.out.size();
    if (range.offset > file_->size() || size > file_->size() - range.offset)
      fail("'{}' is truncated: it ends at byte {}", file_->address(), file_->size());
    if (size == 0) return;
    const std::uint64_t last = (range.offset + size - 1) / kCacheBlock;
    for (std::uint64_t number = range.offset / kCacheBlock; number <= last; ++number)
      use(number);
  }
  /// Blocks that follow each other in the object and in memory come as one range.
  void fetch(const std::vector<CachedBlock>& missing) const {
    std::vector<RemoteFile::Range> ranges;
    for (const CachedBlock& block : missing) {
      const std::uint64_t begin = block.number * kCacheBlock;
      if (!ranges.empty()) {
        RemoteFile::Range& last = ranges.back();
        if (last.offset + last.out.size() == begin &&
            last.out.data() + last.out.size() == block.bytes.data()) {
          last.out = {last.out.data(), last.out.size() + block.bytes.size()};
          continue;
        }
      }
      ranges.push_back({begin, block.bytes});
    }
    if (!ranges.empty()) file_->pread_all(ranges);
  }
  static void copy_part(const RemoteFile::Range& range, std::uint64_t number,
                        std::span<const std::byte> block) {
    const std::uint64_t block_begin = number * kCacheBlock;
    const std::uint64_t begin = std::max(block_begin, range.offset);
    const std::uint64_t end = std::min(block_begin + block.size(), range.offset + range.out.size());
    const std::byte* const from = block.data() + (begin - block_begin);
    std::byte* const to = range.out.data() + (begin - range.offset);
    if (from != to) std::memcpy(to, from, end - begin);
  }

  std::shared_ptr<RemoteFile> file_;
  std::shared_ptr<BlockCache> cache_;
  std::string name_;
};

}  // namespace

CopyFolder::CopyFolder(std::string folder, std::uint64_t most_bytes)
    : folder_(std::move(folder)), most_(most_bytes) {
  make_directories(folder_);
  const File ledger = open_cache_file(join_path(folder_, kLedger));
  wait_for_lock(ledger.fd());
  const std::uint64_t bytes = remove_oldest(0);
  if (::pwrite(ledger.fd(), &bytes, sizeof bytes, 0) != sizeof bytes)
    fail_output(errno, "cannot write '{}'", ledger.path());
}

void CopyFolder::make_room(std::uint64_t bytes, std::uint64_t there) const {
  const File ledger = open_cache_file(join_path(folder_, kLedger));
  wait_for_lock(ledger.fd());
  std::uint64_t sum = 0;
  if (::pread(ledger.fd(), &sum, sizeof sum, 0) != sizeof sum) sum = most_;
  sum = sum > most_ || bytes > most_ - sum ? remove_oldest(bytes - there) : sum + bytes;
  if (::pwrite(ledger.fd(), &sum, sizeof sum, 0) != sizeof sum)
    fail_output(errno, "cannot write '{}'", ledger.path());
}

/// Removes copies if there are too many bytes with those that come, and what killed programs left.
/// Returns the bytes that remain, with those that come.
std::uint64_t CopyFolder::remove_oldest(std::uint64_t coming) const {
  struct Copy {
    timespec used{};
    std::uint64_t bytes = 0;
    std::string path;
  };
  std::vector<Copy> copies;
  std::uint64_t sum = coming;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    const bool unfinished = !unfinished_copy(name).empty(), blocks = is_blocks_name(name);
    struct stat facts {};
    if ((!unfinished && !blocks && !is_copy_name(name)) ||
        ::lstat(entry.path().c_str(), &facts) != 0 || !S_ISREG(facts.st_mode))
      continue;
    if (unfinished && remove_if_left(entry.path().string())) continue;
    // A file of blocks has space only for those that were read.
    const auto bytes = static_cast<std::uint64_t>(blocks ? 512 * facts.st_blocks : facts.st_size);
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
    make_room(bytes, bytes);  // the temporary file has its whole size
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
  g_blocks = nullptr;
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
  const File copy = cache->copy(name_of_copy(*object), object->size(),
                                [&](File& to) { copy_object(object, to); });
  return from_begin(copy, address);
}

std::shared_ptr<CachedFile> CachedFile::open(const std::string& address) {
  return of(RemoteFile::open(address));
}

std::shared_ptr<CachedFile> CachedFile::of(std::shared_ptr<RemoteFile> file) {
  std::shared_ptr<BlockCache> cache = blocks_in_use();
  if (!cache || file->version().empty()) return std::make_shared<UncachedFile>(std::move(file));
  return std::make_shared<BlockFile>(std::move(file), std::move(cache));
}

}  // namespace vfm::io

// SPDX-License-Identifier: Apache-2.0
#include "io/block_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/hash.h"

namespace vfm::io {
namespace {

constexpr std::uint64_t kBlocksOfFile = 2048;
constexpr std::uint64_t kStretch = kBlocksOfFile * kCacheBlock;
constexpr std::size_t kMostOfRun = std::size_t{8} << 20;

/// XXH3 of 64 bits, as text: where nothing was written there are no digits.
using Checksum = std::array<char, 16>;

Checksum checksum_of(std::span<const std::byte> bytes) {
  Checksum sum;
  const std::string digits = Hasher().update(bytes.data(), bytes.size()).hex64();
  std::copy_n(digits.begin(), sum.size(), sum.begin());
  return sum;
}

bool read_whole(int fd, void* out, std::size_t size, std::uint64_t offset) {
  auto* to = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t got = ::pread(fd, to, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    offset += static_cast<std::uint64_t>(got);
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

void write_whole(const File& file, const void* data, std::size_t size, std::uint64_t offset) {
  const auto* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::pwrite(file.fd(), from, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_output(errno, "cannot write '{}'", file.path());
    from += written;
    offset += static_cast<std::uint64_t>(written);
    size -= static_cast<std::size_t>(written);
  }
}

std::uint64_t place_of(std::uint64_t block) {
  return block % kBlocksOfFile * kCacheBlock;
}
std::uint64_t place_of_checksum(std::uint64_t block) {
  return kStretch + block % kBlocksOfFile * sizeof(Checksum);
}

/// The first of `blocks` that does not belong to the file of the first one.
std::size_t of_one_file(std::span<const CachedBlock> blocks) {
  const std::uint64_t stretch = blocks[0].number / kBlocksOfFile;
  std::size_t count = 1;
  while (count < blocks.size() && blocks[count].number / kBlocksOfFile == stretch)
    ++count;
  return count;
}

/// Reads blocks of one file, and adds those that are not there to `missing`.
void read_blocks(const std::string& path, std::span<const CachedBlock> blocks,
                 std::vector<CachedBlock>& missing) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW), path);
  if (!file && errno != ENOENT) fail_errno(errno, "cannot open '{}'", path);
  if (!file) {
    missing.insert(missing.end(), blocks.begin(), blocks.end());
    return;
  }
  const std::uint64_t first = blocks.front().number;
  std::vector<Checksum> sums(blocks.back().number - first + 1);
  // The file ends with the last checksum that was written.
  read_whole(file.fd(), sums.data(), sums.size() * sizeof(Checksum), place_of_checksum(first));
  for (const CachedBlock& block : blocks) {
    const Checksum& sum = sums[block.number - first];
    const bool there =
        sum[0] != '\0' &&
        read_whole(file.fd(), block.bytes.data(), block.bytes.size(), place_of(block.number)) &&
        checksum_of(block.bytes) == sum;
    if (!there) missing.push_back(block);
  }
  const timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
  ::futimens(file.fd(), now);  // when it was used; of another user's file this may fail
}

}  // namespace

std::string BlockCache::path_of(const std::string& object, std::uint64_t block) const {
  return join_path(folder_->folder(),
                   hash_hex(object + "\nblocks " + std::to_string(block / kBlocksOfFile)) +
                       std::string(CopyFolder::kBlocks));
}

std::vector<CachedBlock> BlockCache::read(const std::string& object,
                                          std::span<const CachedBlock> blocks) const {
  std::vector<CachedBlock> missing;
  while (!blocks.empty()) {
    const std::size_t count = of_one_file(blocks);
    read_blocks(path_of(object, blocks[0].number), blocks.first(count), missing);
    blocks = blocks.subspan(count);
  }
  return missing;
}

void BlockCache::write(const std::string& object, std::span<const CachedBlock> blocks) {
  while (!blocks.empty()) {
    const std::size_t most = of_one_file(blocks);
    std::size_t count = 1, size = blocks[0].bytes.size();
    while (count < most && blocks[count].number == blocks[count - 1].number + 1 &&
           size + blocks[count].bytes.size() <= kMostOfRun)
      size += blocks[count++].bytes.size();
    Run run{object, blocks[0].number, std::make_unique_for_overwrite<std::byte[]>(size), size};
    std::byte* to = run.bytes.get();
    for (const CachedBlock& block : blocks.first(count))
      to = std::ranges::copy(block.bytes, to).out;
    add(std::move(run));
    blocks = blocks.subspan(count);
  }
}

void BlockCache::add(Run run) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || waiting_ + run.size <= kMostWaiting; });
  if (error_) std::rethrow_exception(error_);
  waiting_ += run.size;
  runs_.push_back(std::move(run));
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  changed_.notify_all();
}

BlockCache::~BlockCache() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BlockCache::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ended_ || !runs_.empty(); });
    if (runs_.empty()) return;
    const Run run = std::move(runs_.front());
    runs_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      write_run(run);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    waiting_ -= run.size;
    if (error) {
      error_ = error;
      runs_.clear();
    }
    changed_.notify_all();
  }
}

void BlockCache::write_run(const Run& run) const {
  std::vector<Checksum> sums;
  for (std::size_t at = 0; at < run.size; at += kCacheBlock)
    sums.push_back(
        checksum_of({run.bytes.get() + at, std::min<std::size_t>(kCacheBlock, run.size - at)}));
  folder_->make_room(run.size + sums.size() * sizeof(Checksum));
  const std::string path = path_of(run.object, run.first);
  const File file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666), path);
  if (!file) fail_output(errno, "cannot create '{}'", path);
  write_whole(file, run.bytes.get(), run.size, place_of(run.first));
  write_whole(file, sums.data(), sums.size() * sizeof(Checksum), place_of_checksum(run.first));
}

}  // namespace vfm::io

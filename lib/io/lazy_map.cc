// SPDX-License-Identifier: Apache-2.0
#include "io/lazy_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/full_disk.h"
#include "io/scratch_file.h"

namespace vfm::io {
namespace {

std::atomic<std::size_t> g_lazy_maps = 0;
std::mutex g_lazy_mutex;
std::map<const std::byte*, LazyMap*> g_lazy_map_at;  // by their begin

LazyMap* lazy_map_of(const std::byte* address) {
  const std::lock_guard lock(g_lazy_mutex);
  auto after = g_lazy_map_at.upper_bound(address);
  if (after == g_lazy_map_at.begin()) return nullptr;
  LazyMap* const map = std::prev(after)->second;
  return address < map->bytes().data() + map->bytes().size() ? map : nullptr;
}

}  // namespace

LazyMap::LazyMap(std::shared_ptr<const RemoteFile> object)
    : object_(std::move(object)),
      file_(open_nameless(std::filesystem::temp_directory_path().string())),
      size_(object_->size()),
      page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
      there_((size_ + page_ - 1) / page_) {
  if (size_ == 0) return;
  if (::ftruncate(file_.fd(), static_cast<off_t>(size_)) != 0)
    fail_output(errno, "cannot make a temporary file for '{}'", path());
  void* const map = ::mmap(nullptr, size_, PROT_NONE, MAP_SHARED, file_.fd(), 0);
  if (map == MAP_FAILED) fail_errno(errno, "cannot map '{}'", path());
  data_ = static_cast<std::byte*>(map);
  const std::lock_guard lock(g_lazy_mutex);
  g_lazy_map_at[data_] = this;
  ++g_lazy_maps;
}

LazyMap::~LazyMap() {
  if (data_ == nullptr) return;
  {
    const std::lock_guard lock(g_lazy_mutex);
    g_lazy_map_at.erase(data_);
    --g_lazy_maps;
  }
  ::munmap(data_, size_);
}

void LazyMap::need(std::span<const std::span<const std::byte>> parts) {
  struct Pages {
    std::size_t begin, end;
  };
  const std::lock_guard lock(mutex_);
  std::vector<Pages> missing;
  for (const std::span<const std::byte> part : parts) {
    if (part.empty()) continue;
    const auto begin = static_cast<std::size_t>(part.data() - data_);
    const std::size_t last = (begin + part.size() - 1) / page_;
    for (std::size_t page = begin / page_; page <= last; ++page) {
      if (there_[page]) continue;
      there_[page] = true;  // not twice in `missing`
      if (!missing.empty() && missing.back().end == page)
        ++missing.back().end;
      else
        missing.push_back({page, page + 1});
    }
  }
  if (missing.empty()) return;
  std::ranges::sort(missing, {}, &Pages::begin);
  std::vector<RemoteFile::Range> ranges;
  const auto bytes_of = [&](const Pages& pages) {
    return std::min(pages.end * page_, size_) - pages.begin * page_;
  };
  try {
    for (const Pages& pages : missing) {
      const std::size_t at = pages.begin * page_, size = bytes_of(pages);
      // Without space a write to the map would end the process.
      const int error =
          ::posix_fallocate(file_.fd(), static_cast<off_t>(at), static_cast<off_t>(size));
      if (error != 0 && error != EINVAL && error != EOPNOTSUPP)
        fail_output(error, "cannot write a temporary file for '{}'", path());
      if (::mprotect(data_ + at, size, PROT_READ | PROT_WRITE) != 0)
        fail_errno(errno, "cannot map '{}'", path());
      ranges.push_back({at, {data_ + at, size}});
    }
    object_->pread_all(ranges);
  } catch (...) {
    for (const Pages& pages : missing) {
      ::mprotect(data_ + pages.begin * page_, bytes_of(pages), PROT_NONE);
      std::fill(there_.begin() + static_cast<std::ptrdiff_t>(pages.begin),
                there_.begin() + static_cast<std::ptrdiff_t>(pages.end), false);
    }
    throw;
  }
  for (const RemoteFile::Range& range : ranges)
    ::mprotect(range.out.data(), range.out.size(), PROT_READ);
}

void LazyMap::release(std::span<const std::byte> part) const {
  if (part.empty() || part.data() < data_ || part.data() >= data_ + size_) return;
  const std::size_t before = static_cast<std::size_t>(part.data() - data_) % page_;
  // Only a hint: the bytes stay in the file.
  ::madvise(const_cast<std::byte*>(part.data()) - before, part.size() + before, MADV_DONTNEED);
}

std::unique_ptr<LazyMap> map_safetensors(const std::string& address) {
  constexpr std::size_t kMostHeads = std::size_t{64} << 10;  // most headers are shorter
  constexpr std::uint64_t kMostHeader = 100'000'000;         // as io/safetensors.h
  auto map = std::make_unique<LazyMap>(RemoteFile::open(address));
  const std::span<const std::byte> bytes = map->bytes();
  need_bytes(bytes.first(std::min(kMostHeads, bytes.size())));
  if (bytes.size() < 8) return map;
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i)
    length |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
  if (length <= kMostHeader)  // parse_safetensors() refuses a longer one
    need_bytes(bytes.first(std::min<std::uint64_t>(8 + length, bytes.size())));
  return map;
}

bool has_lazy_maps() {
  return g_lazy_maps > 0;
}

void need_bytes(std::span<const std::span<const std::byte>> parts) {
  if (!has_lazy_maps()) return;
  std::map<LazyMap*, std::vector<std::span<const std::byte>>> of_maps;
  for (const std::span<const std::byte> part : parts)
    if (!part.empty())
      if (LazyMap* const map = lazy_map_of(part.data())) of_maps[map].push_back(part);
  for (const auto& [map, own] : of_maps)
    map->need(own);
}

void need_bytes(std::span<const std::byte> part) {
  if (has_lazy_maps()) need_bytes(std::span<const std::span<const std::byte>>(&part, 1));
}

}  // namespace vfm::io

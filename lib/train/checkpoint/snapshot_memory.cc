// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/snapshot_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "io/file.h"
#include "io/folder.h"
#include "train/cost/host_memory.h"

namespace vfm::train {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHashDigits = 32, kRunDigits = 16;

std::string prefix_of_user() {
  return fmt::format("vfm-{}-", ::geteuid());
}

/// Containers may share /dev/shm and have other folders under the same path.
std::string snapshot_folder(const std::string& run, const std::string& root) {
  std::string name = io::canonical_path(run);
  if (struct stat facts{}; ::stat(run.c_str(), &facts) == 0)
    name += fmt::format(" {} {}", facts.st_dev, facts.st_ino);
  return io::join_path(root, prefix_of_user() + hash_hex(name).substr(0, kRunDigits));
}

/// Whether nobody else can have put anything there.
bool is_own_folder(const std::string& folder) {
  struct stat facts {};
  return ::lstat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) &&
         facts.st_uid == ::geteuid() && (facts.st_mode & 077) == 0;
}

/// Bytes that are free in the root; 0 if it is not in memory.
double room_in(const std::string& root) {
  struct statfs kind {};
  struct statvfs space {};
  if (::statfs(root.c_str(), &kind) != 0 || kind.f_type != TMPFS_MAGIC) return 0;
  if (::statvfs(root.c_str(), &space) != 0) return 0;
  if (space.f_blocks == 0) return std::numeric_limits<double>::infinity();  // it has no limit
  return static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
}

/// Memory of a new file in a folder of our own, or of the process without a path; null if there is
/// none, and then no file.
std::byte* map_memory(std::size_t bytes, const std::string& path) {
  int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (!path.empty()) {
    ::unlink(path.c_str());
    fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return nullptr;
    // Else a page that does not fit would be a signal.
    if (::posix_fallocate(fd, 0, static_cast<off_t>(bytes)) != 0) {
      ::close(fd);
      ::unlink(path.c_str());
      return nullptr;
    }
    flags = MAP_SHARED;
  }
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (fd >= 0) ::close(fd);
  if (data == MAP_FAILED) {
    if (!path.empty()) ::unlink(path.c_str());
    return nullptr;
  }
  ::madvise(data, bytes, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE  // else each page is a fault of its own
  ::madvise(data, bytes, MADV_POPULATE_WRITE);
#endif
  return static_cast<std::byte*>(data);
}

}  // namespace

std::map<std::string, std::string> snapshot_files(const std::string& run, const std::string& root) {
  std::map<std::string, std::string> files;
  const std::string folder = snapshot_folder(run, root);
  if (!is_own_folder(folder)) return files;
  ::utimensat(AT_FDCWD, folder.c_str(), nullptr, 0);  // who looks for old ones leaves it now
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.find('.') == kHashDigits) files[name.substr(0, kHashDigits)] = entry.path().string();
  }
  return files;
}

void remove_snapshots(const std::string& run, const std::string& root) noexcept {
  try {
    constexpr std::chrono::hours kLeft{24};
    const std::string own = snapshot_folder(run, root);
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root, error)) {
      const std::string name = entry.path().filename().string(), prefix = prefix_of_user();
      if (!name.starts_with(prefix) || name.size() != prefix.size() + kRunDigits) continue;
      if (name.find_first_not_of("0123456789abcdef", prefix.size()) != name.npos) continue;
      if (!is_own_folder(entry.path().string())) continue;
      const auto changed = fs::last_write_time(entry.path(), error);
      if (entry.path() == own || (!error && fs::file_time_type::clock::now() - changed > kLeft))
        fs::remove_all(entry.path(), error);
    }
  } catch (const std::exception& error) {
    log_info("{}", error.what());
  }
}

void copy_by_threads(std::byte* to, std::span<const std::byte> from) {
  constexpr std::size_t kPart = std::size_t{1} << 20;
  const auto parts = static_cast<std::int64_t>((from.size() + kPart - 1) / kPart);
#pragma omp parallel for schedule(static) if (parts > 1)
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * kPart;
    std::memcpy(to + at, from.data() + at, std::min(kPart, from.size() - at));
  }
}

SnapshotMemory::SnapshotMemory(const std::string& run, int rank, std::string root)
    : root_(std::move(root)),
      folder_(snapshot_folder(run, root_)),
      run_(io::canonical_path(run)),
      rank_(rank) {}

SnapshotMemory::~SnapshotMemory() {
  for (const Parts& parts : snapshots_)
    for (const Part& part : parts) {
      ::munmap(part.data, part.bytes);
      if (part.name.empty() && !part.path.empty()) ::unlink(part.path.c_str());
    }
}

SnapshotMemory::Place SnapshotMemory::choose(double of_host) const {
  const HostMemory memory = host_memory();
  const double rest = memory.all / 10;
  if (memory.free < of_host + rest) return Place::none;
  if (std::min(memory.free, room_in(root_)) < 2 * of_host + rest) return Place::process;
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return Place::process;
  if (!is_own_folder(folder_)) return Place::process;
  const int made = ::symlink(run_.c_str(), run_link().c_str());
  return made == 0 || errno == EEXIST ? Place::shared : Place::process;
}

bool SnapshotMemory::open(Parts& parts) {
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    Part part{.bytes = sizes_[i]};
    if (place_ == Place::shared)
      part.path =
          io::join_path(folder_, fmt::format("{}.{}.{}", rank_, &parts - snapshots_.data(), i));
    part.data = map_memory(part.bytes, part.path);
    if (part.data == nullptr) {
      close(parts);
      return false;
    }
    parts.push_back(std::move(part));
  }
  return true;
}

/// Files that are about to change lose their hashes first.
void SnapshotMemory::withdraw(Parts& parts) const {
  for (Part& part : parts) {
    const std::string name = std::exchange(part.name, {});
    if (name.empty() || std::rename(name.c_str(), part.path.c_str()) == 0) continue;
    if (::unlink(name.c_str()) != 0 && errno != ENOENT)
      fail_errno(errno, "cannot remove '{}'", name);
  }
}

void SnapshotMemory::close(Parts& parts) noexcept {
  for (const Part& part : parts) {
    ::munmap(part.data, part.bytes);
    for (const std::string& path : {part.path, part.name})
      if (!path.empty()) ::unlink(path.c_str());
  }
  parts.clear();
}

SnapshotMemory::Place SnapshotMemory::begin(const std::vector<std::uint64_t>& sizes,
                                            double of_host) {
  if (sizes != sizes_ || place_ == Place::none) {
    for (Parts& parts : snapshots_)
      close(parts);
    sizes_ = sizes;
    place_ = choose(of_host);
    if (place_ == Place::none) return place_;
  }
  filled_ = place_ == Place::shared ? 1 - kept_ : kept_;
  Parts* parts = &snapshots_[filled_];
  withdraw(*parts);
  if (parts->size() == sizes_.size() || open(*parts)) return place_;
  if (place_ == Place::shared) {  // there is less room than before: no more than one snapshot
    place_ = Place::process;
    filled_ = kept_;
    parts = &snapshots_[filled_];
    close(*parts);
    if (open(*parts)) return place_;
  }
  return place_ = Place::none;
}

std::span<std::byte> SnapshotMemory::file(std::size_t i) const {
  const Part& part = snapshots_[filled_][i];
  return {part.data, part.bytes};
}

void SnapshotMemory::name(std::size_t i, const std::string& hash) {
  Part& part = snapshots_[filled_][i];
  if (part.path.empty()) return;
  const std::string name = io::join_path(folder_, hash + "." + io::base_name(part.path));
  // Without a name it is not found, and the disk is read.
  if (std::rename(part.path.c_str(), name.c_str()) == 0) part.name = name;
}

void SnapshotMemory::prepare() {
  Parts& other = snapshots_[1 - filled_];
  if (place_ == Place::shared && other.empty()) open(other);
}

void SnapshotMemory::keep() {
  kept_ = filled_;
}

void SnapshotMemory::remove() noexcept {
  for (Parts& parts : snapshots_)
    close(parts);
  ::unlink(run_link().c_str());
  ::rmdir(folder_.c_str());
}

}  // namespace vfm::train

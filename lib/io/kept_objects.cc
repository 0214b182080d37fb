// SPDX-License-Identifier: Apache-2.0
#include "io/kept_objects.h"

#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <utility>

#include "base/disk_errors.h"
#include "base/error.h"
#include "base/log.h"
#include "io/remote/address.h"
#include "io/remote/remote_file.h"
#include "io/scratch_file.h"

namespace vfm::io {
namespace {

constexpr std::uint64_t kMostKept = std::uint64_t{16} << 30;
constexpr std::uint64_t kMostInMemory = std::uint64_t{64} << 20;

std::atomic<std::uint64_t> g_kept_bytes = 0;     // for which there is room
std::atomic<std::uint64_t> g_written_bytes = 0;  // of these

std::string kept_folder() {
  return std::filesystem::temp_directory_path().string();
}

/// Returns the bytes that the objects which are kept may have.
std::uint64_t most_kept() {
  constexpr long kTmpfs = 0x01021994, kRamfs = 0x858458f6;
  struct statfs facts {};
  if (::statfs(kept_folder().c_str(), &facts) != 0) return 0;
  const std::uint64_t free =
      std::uint64_t{facts.f_bavail} * static_cast<std::uint64_t>(facts.f_bsize);
  const bool in_memory = facts.f_type == kTmpfs || facts.f_type == kRamfs;
  // Of the free space, others of these objects will take what is not yet written.
  return std::min(in_memory ? kMostInMemory : kMostKept, (g_written_bytes + free) / 4);
}

struct NamedObject {
  int users = 0;
  std::shared_ptr<RemoteFile> object;  // null before it was opened
};

std::atomic<int> g_named_objects = 0;  // so that others need no lock
std::mutex g_named_mutex;

/// Guarded by g_named_mutex.
std::map<std::string, NamedObject>& named_objects() {
  static auto& named = *new std::map<std::string, NamedObject>;  // used until the process ends
  return named;
}

}  // namespace

KeptBytes::~KeptBytes() {
  g_kept_bytes -= room_;
  g_written_bytes -= count_;
}

void KeptBytes::add(std::span<const char> bytes, std::uint64_t offset) {
  if (offset > count_ || offset + bytes.size() <= count_) return;
  const std::lock_guard lock(mutex_);
  if (full_ || offset > count_ || offset + bytes.size() <= count_) return;
  bytes = bytes.subspan(static_cast<std::size_t>(count_ - offset));
  const SurvivesFullDisk survives;  // of open_nameless()
  try {
    if (!file_) file_ = open_nameless(kept_folder());
    for (std::uint64_t at = count_; !bytes.empty();) {
      const ssize_t put = ::pwrite(file_.fd(), bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail_errno(errno, "cannot write '{}'", file_.path());
      bytes = bytes.subspan(static_cast<std::size_t>(put));
      count_ = at += static_cast<std::uint64_t>(put);
      g_written_bytes += static_cast<std::uint64_t>(put);
    }
  } catch (const Error& error) {
    log_info("what is read again is not kept: {}", error.what());
    full_ = true;
  }
}

std::size_t KeptBytes::read_some(void* out, std::size_t size, std::uint64_t offset) const {
  const std::uint64_t count = count_;
  if (offset >= count) return 0;
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, count - offset));
  file_.pread_exact(out, size, offset);
  return size;
}

KeptObjects::KeptObjects(const std::vector<std::string>& paths) {
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(addresses_), is_remote);
  if (addresses_.empty()) return;
  const std::lock_guard lock(g_named_mutex);
  for (const std::string& address : addresses_)
    ++named_objects()[address].users;
  g_named_objects += static_cast<int>(addresses_.size());
}

KeptObjects::~KeptObjects() {
  if (addresses_.empty()) return;
  const std::lock_guard lock(g_named_mutex);
  for (const std::string& address : addresses_)
    if (const auto found = named_objects().find(address); --found->second.users == 0)
      named_objects().erase(found);
  g_named_objects -= static_cast<int>(addresses_.size());
}

void KeptObjects::forget(const std::string& path) {
  opened(path, nullptr);
}

std::shared_ptr<RemoteFile> KeptObjects::find(const std::string& address) {
  if (g_named_objects == 0) return nullptr;
  const std::lock_guard lock(g_named_mutex);
  const auto found = named_objects().find(address);
  return found == named_objects().end() ? nullptr : found->second.object;
}

std::shared_ptr<KeptBytes> KeptObjects::room_for(const std::string& address, std::uint64_t bytes) {
  if (g_named_objects == 0) return nullptr;
  const std::lock_guard lock(g_named_mutex);
  if (!named_objects().contains(address)) return nullptr;
  const std::uint64_t most = most_kept();
  if (bytes > most || g_kept_bytes > most - bytes) return nullptr;
  g_kept_bytes += bytes;
  return std::make_shared<KeptBytes>(bytes);
}

void KeptObjects::opened(const std::string& address, std::shared_ptr<RemoteFile> object) {
  if (g_named_objects == 0) return;
  const std::lock_guard lock(g_named_mutex);
  const auto found = named_objects().find(address);
  if (found != named_objects().end()) found->second.object = std::move(object);
}

}  // namespace vfm::io

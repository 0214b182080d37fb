// SPDX-License-Identifier: Apache-2.0
#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/error.h"
#include "base/full_disk.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/stop.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "io/remote/remote_file.h"
#include "io/remote/upload.h"

namespace vfm::io {
namespace {

/// Returns false if another program has renamed the file behind `fd`, or replaced it.
bool names_file(const std::string& path, int fd) {
  struct stat by_name {
  }, by_fd{};
  return ::stat(path.c_str(), &by_name) == 0 && ::fstat(fd, &by_fd) == 0 &&
         by_name.st_ino == by_fd.st_ino && by_name.st_dev == by_fd.st_dev;
}

bool has_other_name(int fd) {
  struct stat facts {};
  return ::fstat(fd, &facts) == 0 && facts.st_nlink > 1;
}

thread_local bool t_quiet_waits = false;

// The TemporaryPlace. No root: there is none.
std::mutex g_temporary_mutex;
std::string g_temporary_root, g_temporary_folder;

std::string whole_name(const std::string& path) {
  std::error_code error;
  return std::filesystem::absolute(path, error).lexically_normal().string();
}

std::string temporary_of(const std::string& path) {
  if (is_bucket(path))
    return join_path(scratch_folder_of(dir_name(path)), "." + base_name(path) + ".tmp");
  const std::lock_guard lock(g_temporary_mutex);
  if (!g_temporary_root.empty())
    if (const std::string whole = whole_name(path); whole.starts_with(g_temporary_root))
      return join_path(g_temporary_folder, hash_hex(whole).substr(0, 16) + ".tmp");
  return join_path(dir_name(path), "." + base_name(path) + ".tmp");
}

/// Only the first wait is a warning, and only one rank gives it.
void wait_for_other(const std::string& target) {
  static std::atomic_flag said;
  const LogLevel level = t_quiet_waits         ? LogLevel::debug
                         : said.test_and_set() ? LogLevel::info
                                               : LogLevel::warning;
  log_at(level, "another program is writing '{}'; waiting for it", target);
}

/// Opens or makes the temporary file. In a folder of several users, a link could have this name,
/// and another file would be emptied.
File open_temporary(const std::string& temporary, const std::string& target) {
  refuse_address(target);
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int fd = ::open(temporary.c_str(), kFlags, 0666);
  const int error = fd < 0 ? errno : 0;
  File file(fd, target);
  struct stat facts {};
  // ELOOP means a link with this name, or a loop of links among the folders of the path. lstat()
  // fails only for the loop.
  if (error == ELOOP && ::lstat(temporary.c_str(), &facts) != 0)
    fail(
        "cannot create '{}': a link in '{}' leads back to itself; remove it, or choose another "
        "folder",
        target, dir_name(target));
  if (error != 0 && error != ELOOP) fail_output(error, "cannot create '{}'", target);
  if (fd < 0 || ::fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode))
    fail("cannot create '{}': '{}' is a link or a pipe, which vfm does not make; remove it", target,
         temporary);
  return file;
}

File open_locked(const std::string& temporary, const std::string& target, bool wait) {
  for (bool waiting = false;;) {
    File file = open_temporary(temporary, target);
    const int fd = file.fd();
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      if (!wait)
        fail("'{}' is being written by another program; wait for it, or choose another output",
             target);
      if (!std::exchange(waiting, true)) wait_for_other(target);
      check_stop();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    // Any other error of flock() means a file system without locks. The file is then used without
    // one.
    if (!names_file(temporary, fd)) continue;
    // A file with a second name keeps its contents under that name. A new file is made here.
    if (has_other_name(fd)) {
      if (::unlink(temporary.c_str()) != 0 && errno != ENOENT)
        fail_output(errno, "cannot create '{}'", target);
      continue;
    }
    if (::ftruncate(fd, 0) != 0) fail_output(errno, "cannot create '{}'", target);
    return file;
  }
}

}  // namespace

QuietWaits::QuietWaits(bool quiet) {
  t_quiet_waits = quiet;
}

QuietWaits::~QuietWaits() {
  t_quiet_waits = false;
}

TemporaryPlace::TemporaryPlace(const std::string& root, const std::string& folder)
    : folder_(is_bucket(root) ? "" : folder) {
  if (folder_.empty()) return;
  make_directories(folder);
  const std::lock_guard lock(g_temporary_mutex);
  g_temporary_root = whole_name(root + "/");
  g_temporary_folder = folder;
}

TemporaryPlace::~TemporaryPlace() {
  if (folder_.empty()) return;
  {
    const std::lock_guard lock(g_temporary_mutex);
    g_temporary_root.clear();
  }
  std::error_code error;  // The next process that does this work removes what cannot be removed.
  std::filesystem::remove_all(folder_, error);
}

AtomicFile::AtomicFile(std::string path, bool wait) : path_(std::move(path)) {
  if (is_remote(path_)) {
    upload_ = std::make_unique<ObjectUpload>(path_);
    return;
  }
  temporary_ = temporary_of(path_);
  file_ = open_locked(temporary_, path_, wait);
}

AtomicFile::AtomicFile(std::string path) : AtomicFile(std::move(path), false) {}

AtomicFile AtomicFile::await(std::string path) {
  return AtomicFile(std::move(path), true);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      upload_(std::move(other.upload_)),
      temporary_(std::exchange(other.temporary_, {})),
      file_(std::move(other.file_)),
      written_(other.written_) {}

AtomicFile::~AtomicFile() {
  abandon();
}

void AtomicFile::use_local_file() const {
  if (!upload_) return;
  if (upload_->bytes_written() > 0)
    fail("'{}' has no local file, since its first bytes were sent", path_);
  temporary_ = temporary_of(path_);
  file_ = open_locked(temporary_, path_, true);
  upload_.reset();
}

const std::string& AtomicFile::temporary_path() const {
  use_local_file();
  return temporary_;
}

int AtomicFile::fd() const {
  use_local_file();
  return file_.fd();
}

void AtomicFile::write(const void* data, std::size_t size) {
  if (upload_)
    upload_->write(data, size);
  else
    file_.write_all(data, size);
  written_ += size;
}

/// Sends the local file to the bucket. A library may have filled the file through another
/// descriptor, so it is read from its beginning.
void AtomicFile::send() {
  ObjectUpload upload(path_);
  std::vector<char> buffer(1 << 20);
  const std::uint64_t bytes = file_.size();
  for (std::uint64_t at = 0; at < bytes;) {
    check_stop();
    const std::size_t size = std::min<std::uint64_t>(buffer.size(), bytes - at);
    file_.pread_exact(buffer.data(), size, at);
    upload.write(buffer.data(), size);
    at += size;
  }
  upload.commit();
}

void AtomicFile::commit() {
  if (upload_) {
    upload_->commit();
    upload_.reset();
    return;
  }
  if (is_bucket(path_)) {
    send();
    abandon();
    return;
  }
  if (::fsync(file_.fd()) != 0) fail_output(errno, "cannot write '{}'", path_);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail_output(errno, "cannot create '{}'", path_);
  temporary_.clear();
  file_.close();
  sync_directory(dir_name(path_));
}

bool AtomicFile::differs() const {
  if (upload_) return upload_->differs();
  if (is_bucket(path_)) {
    const std::shared_ptr<RemoteFile> there = RemoteFile::open_if_there(path_);
    return !there || there->size() != file_.size() || there->stored_hash() != hash_file(temporary_);
  }
  if (!file_exists(path_)) return true;
  const File there = File::open_regular(path_);
  const std::uint64_t bytes = file_.size();
  if (there.size() != bytes) return true;
  constexpr std::uint64_t kPiece = 1 << 16;
  std::string ours(kPiece, '\0'), theirs(kPiece, '\0');
  for (std::uint64_t at = 0; at < bytes; at += kPiece) {
    check_stop();
    const std::size_t size = std::min(kPiece, bytes - at);
    file_.pread_exact(ours.data(), size, at);
    there.pread_exact(theirs.data(), size, at);
    if (std::string_view(ours).substr(0, size) != std::string_view(theirs).substr(0, size))
      return true;
  }
  return false;
}

void AtomicFile::commit_changes() {
  if (differs())
    commit();
  else
    abandon();
}

void AtomicFile::abandon() noexcept {
  if (upload_) upload_->abandon();
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  temporary_.clear();
}

void write_file(const std::string& path, std::string_view contents) {
  AtomicFile file = AtomicFile::await(path);
  file.write(contents);
  file.commit();
}

void update_file(const std::string& path, std::string_view contents) {
  if (is_bucket(path)) {
    AtomicFile file(path);
    file.write(contents);
    return file.commit_changes();
  }
  if (file_exists(path) && read_file(path) == contents) return;
  write_file(path, contents);
}

void sync_directory(const std::string& path) {
  if (is_bucket(path)) return;
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_output(errno, "cannot open directory '{}'", path);
  const File directory(fd, path);
  // Some network file systems cannot sync a directory (EINVAL). Their rename is durable.
  if (::fsync(fd) != 0 && errno != EINVAL) fail_output(errno, "cannot write directory '{}'", path);
}

}  // namespace vfm::io

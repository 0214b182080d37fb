// SPDX-License-Identifier: Apache-2.0
#include "io/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/process_name.h"
#include "io/remote/address.h"
#include "io/remote/bucket_store.h"

namespace vfm::io {
namespace {

constexpr double kReplacePatience = 10;   // seconds
std::atomic<std::uint64_t> g_written{0};  // temporary files of this process

bool is_absent(int error) {
  // ESTALE: another host removed the object while it was opened.
  return error == ENOENT || error == ENOTDIR || error == ESTALE;
}

/// Opens an object. On a network file system, opening asks the server, so what is read is not older
/// than the call. Returns no file if there is no object.
File open_object(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && !is_absent(errno)) fail_errno(errno, "cannot open '{}'", path);
  return {fd, path};
}

std::string version_of(const struct stat& facts) {
  return fmt::format("{}-{}-{}.{}", facts.st_ino, facts.st_size, facts.st_mtim.tv_sec,
                     facts.st_mtim.tv_nsec);
}

struct stat facts_of(const File& file) {
  struct stat facts {};
  if (::fstat(file.fd(), &facts) != 0) fail_errno(errno, "cannot read '{}'", file.path());
  return facts;
}

/// Returns what `look` returns. On a network file system, another host may remove or replace an
/// object after it was opened here. Then the open file gives ESTALE, and the next look opens what
/// is there now.
template <class Look>
auto despite_replacement(Look look) {
  constexpr int kTries = 5;
  for (int tries = 1;; ++tries) {
    try {
      return look();
    } catch (const Error& error) {
      if (error.cause() != Cause::disk || tries == kTries) throw;
    }
  }
}

/// Returns whether `temporary` has a second name. The answer of link() may be lost on the way, and
/// then link() is repeated by the system and finds what it made itself.
bool has_second_name(const std::string& temporary) {
  struct stat facts {};
  return ::stat(temporary.c_str(), &facts) == 0 && facts.st_nlink > 1;
}

/// Returns the number of the file, or 0 if there is none.
ino_t file_number(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

enum class Linked { yes, exists, vanished };

/// Gives `temporary` the name `path` too, if there is no such file.
Linked link_new(const std::string& temporary, const std::string& path) {
  if (::link(temporary.c_str(), path.c_str()) == 0) return Linked::yes;
  const int error = errno;
  if (has_second_name(temporary)) return Linked::yes;
  if (error == EEXIST) return Linked::exists;
  if (error == ENOENT) return Linked::vanished;  // sweep() of another process
  ::unlink(temporary.c_str());
  if (error == EPERM || error == EOPNOTSUPP || error == EMLINK || error == ENOSYS)
    fail("cannot create '{}': its file system has no hard links; use another folder", path);
  fail_output(error, "cannot create '{}'", path);
}

std::string next_name(const std::string& path) {
  return join_path(dir_name(path), "." + base_name(path) + ".next");
}

/// Waits until another process has renamed or removed the file, or takes it away if the file does
/// not change for too long.
void await_removal(const std::string& path, const std::string& own) {
  Stopwatch watch;
  struct stat first {
  }, now{};
  for (bool seen = false; ::stat(path.c_str(), &now) == 0; seen = true) {
    if (!seen || now.st_ino != first.st_ino) {
      first = now;
      watch = {};
    }
    if (watch.seconds() > kReplacePatience) {
      // Of several processes, one renames it.
      if (std::rename(path.c_str(), own.c_str()) == 0) ::unlink(own.c_str());
      return;
    }
    check_stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

/// Calls `take` with each name in the folder, and whether the name is a folder.
template <class Take>
void for_each_name(const std::string& path, Take take) {
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path.c_str()));
  if (!folder) {
    if (is_absent(errno)) return;
    fail_errno(errno, "cannot open directory '{}'", path);
  }
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (!entry && errno != 0 && !is_absent(errno))
      fail_errno(errno, "cannot read directory '{}'", path);
    if (!entry) return;
    const std::string name = entry->d_name;
    bool is_folder = entry->d_type == DT_DIR;
    if (entry->d_type == DT_UNKNOWN) {
      struct stat facts {};
      is_folder = ::stat(join_path(path, name).c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
    }
    if (name != "." && name != "..") take(name, is_folder);
  }
}

}  // namespace

std::string FileStore::path(const std::string& name) const {
  return name.empty() ? folder_ : join_path(folder_, name);
}

std::optional<Store::Facts> FileStore::facts(const std::string& name) const {
  return despite_replacement([&]() -> std::optional<Facts> {
    const File file = open_object(path(name));
    if (!file) return std::nullopt;
    const struct stat facts = facts_of(file);
    return Facts{static_cast<std::uint64_t>(facts.st_size), version_of(facts)};
  });
}

std::optional<Store::Object> FileStore::read(const std::string& name) const {
  return despite_replacement([&]() -> std::optional<Object> {
    const File file = open_object(path(name));
    if (!file) return std::nullopt;
    const struct stat facts = facts_of(file);
    Object object{std::string(static_cast<std::size_t>(facts.st_size), '\0'), version_of(facts)};
    file.pread_exact(object.contents.data(), object.contents.size(), 0);
    return object;
  });
}

std::string FileStore::read_range(const std::string& name, std::uint64_t offset,
                                  std::size_t size) const {
  const File file = open_object(path(name));
  if (!file) fail_as(Cause::open, "there is no '{}'", path(name));
  const std::uint64_t bytes = file.size();
  std::string contents(std::min<std::uint64_t>(size, bytes - std::min(bytes, offset)), '\0');
  file.pread_exact(contents.data(), contents.size(), offset);
  return contents;
}

std::vector<std::string> FileStore::list(const std::string& folder) const {
  std::vector<std::string> names;
  for_each_name(path(folder), [&](const std::string& name, bool is_folder) {
    if (name.front() != '.') names.push_back(is_folder ? name + "/" : name);
  });
  std::sort(names.begin(), names.end());
  return names;
}

/// Returns the path of a new file, beside `path`, with these contents.
static std::string write_temporary(const std::string& path, std::string_view contents) {
  const std::string folder = dir_name(path);
  const std::string temporary =
      join_path(folder, fmt::format(".{}.{}.{}.tmp", base_name(path), ProcessName::self().name(),
                                    g_written.fetch_add(1)));
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  int fd = ::open(temporary.c_str(), kFlags, 0666);
  if (fd < 0 && errno == ENOENT) {
    make_directories(folder);
    fd = ::open(temporary.c_str(), kFlags, 0666);
  }
  if (fd < 0 && errno == EEXIST) {  // of a killed process that had this number
    ::unlink(temporary.c_str());
    fd = ::open(temporary.c_str(), kFlags, 0666);
  }
  if (fd < 0) fail_output(errno, "cannot create '{}'", path);
  File file(fd, path);
  try {
    file.write_all(contents.data(), contents.size());
    if (::fsync(fd) != 0) fail_output(errno, "cannot write '{}'", path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  return temporary;
}

void FileStore::write(const std::string& name, std::string_view contents) {
  const std::string target = path(name);
  for (;;) {
    const std::string temporary = write_temporary(target, contents);
    if (std::rename(temporary.c_str(), target.c_str()) == 0) break;
    const int error = errno;
    if (error == ENOENT) continue;  // sweep() of another process
    ::unlink(temporary.c_str());
    fail_output(error, "cannot create '{}'", target);
  }
  sync_directory(dir_name(target));
}

bool FileStore::create(const std::string& name, std::string_view contents) {
  const std::string target = path(name);
  for (;;) {
    if (file_exists(target)) return false;
    const std::string temporary = write_temporary(target, contents);
    const Linked linked = link_new(temporary, target);
    ::unlink(temporary.c_str());
    if (linked == Linked::vanished) continue;
    if (linked == Linked::yes) sync_directory(dir_name(target));
    return linked == Linked::yes;
  }
}

bool FileStore::replace(const std::string& name, std::string_view contents,
                        const std::string& version) {
  const std::string target = path(name), next = next_name(target);
  for (;;) {
    const std::optional<Facts> before = facts(name);
    if (!before || before->version != version) return false;
    const std::string temporary = write_temporary(target, contents);
    const ino_t own = file_number(temporary);
    const Stopwatch watch;
    const Linked linked = link_new(temporary, next);
    if (linked != Linked::yes) {
      ::unlink(temporary.c_str());
      if (linked == Linked::exists) await_removal(next, temporary);
      continue;
    }
    // Whoever has `next` is the only one that replaces this version.
    const std::optional<Facts> now = facts(name);
    const bool same = now && now->version == version;
    if (!same || std::rename(next.c_str(), target.c_str()) != 0) {
      const int error = same ? errno : 0;
      ::unlink(temporary.c_str());
      if (error == ENOENT) continue;  // Another process took `next` away, as this one was slow.
      ::unlink(next.c_str());
      if (error != 0) fail_output(error, "cannot create '{}'", target);
      return false;
    }
    ::unlink(temporary.c_str());
    sync_directory(dir_name(target));
    // If this process was very slow, another may have taken `next` away and made its own, and this
    // process has renamed that.
    if (watch.seconds() < kReplacePatience || file_number(target) == own) return true;
  }
}

bool FileStore::remove(const std::string& name) {
  const std::string target = path(name);
  if (::unlink(target.c_str()) != 0) {
    if (is_absent(errno)) return false;
    fail_output(errno, "cannot remove '{}'", target);
  }
  sync_directory(dir_name(target));
  return true;
}

void FileStore::sweep(const std::string& folder) {
  const std::string own = "." + ProcessName::self().name() + ".";
  std::vector<std::string> found;
  for_each_name(path(folder), [&](const std::string& name, bool is_folder) {
    const bool temporary = name.ends_with(".tmp") || name.ends_with(".next");
    if (name.front() == '.' && temporary && !is_folder && name.find(own) == std::string::npos)
      found.push_back(join_path(path(folder), name));
  });
  for (const std::string& each : found)
    ::unlink(each.c_str());
}

std::unique_ptr<Store> open_store(const std::string& folder) {
  if (is_bucket(folder)) return std::make_unique<BucketStore>(folder);
  return std::make_unique<FileStore>(folder);
}

}  // namespace vfm::io

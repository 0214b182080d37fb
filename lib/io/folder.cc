// SPDX-License-Identifier: Apache-2.0
#include "io/folder.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/hash.h"
#include "base/log.h"
#include "io/at_once.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/remote/address.h"
#include "io/remote/environment.h"
#include "io/remote/remote_file.h"
#include "io/remote/s3_client.h"
#include "io/remote/upload.h"

namespace vfm::io {
namespace {

namespace fs = std::filesystem;

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/') && !path.ends_with("://"))
    path.pop_back();
  return path;
}

/// A folder of a bucket.
struct Prefix {
  explicit Prefix(const std::string& folder)
      : address(address_of(folder)), client(S3Client::of(address)), key(address.key) {
    while (key.ends_with('/'))
      key.pop_back();
    if (!key.empty()) key += '/';
  }
  /// Calls `each` for objects and folders, without those that stand for the folder itself. Some
  /// programs write an empty object "a/" for a folder.
  template <class Each>
  void list(bool all, const Each& each) const {
    client->list(key, all, [&](const ListedObject& object) {
      if (!object.name.empty() && (!all || !object.name.ends_with('/'))) each(object);
    });
  }

  ObjectAddress address;
  std::shared_ptr<S3Client> client;
  std::string key;  // Empty, or ends in a slash.
};

struct FoundOne {};

/// Returns the facts of a path, or nullopt if nothing of this path can be seen.
std::optional<struct stat> facts_of_path(const std::string& path) {
  struct stat facts {};
  if (path.find('\0') != std::string::npos || ::stat(path.c_str(), &facts) != 0)
    return std::nullopt;
  return facts;
}

void sort_by_name(std::vector<FolderEntry>& list) {
  std::sort(list.begin(), list.end(), [](const FolderEntry& a, const FolderEntry& b) {
    return a.name != b.name ? a.name < b.name : a.folder < b.folder;
  });
}

/// Adds the entries of a local folder to `list`, with names that begin with `before`. If `deep` is
/// set, adds the files of its folders instead of the folders.
void add_local(const std::string& folder, const std::string& before, bool deep,
               std::vector<FolderEntry>& list) {
  std::error_code error;
  fs::directory_iterator at(folder, error);
  const bool absent =
      error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  if (error && !absent) fail_errno(error.value(), "cannot read directory '{}'", folder);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    FolderEntry entry{before + at->path().filename().string()};
    std::error_code gone;
    const fs::file_status status = at->status(gone);
    entry.folder = fs::is_directory(status);
    if (fs::is_regular_file(status)) entry.bytes = at->file_size(gone);
    if (gone && !at->is_symlink(gone)) continue;  // removed during the walk
    if (gone) entry.bytes = 0;
    if (entry.folder && deep) {
      if (!at->is_symlink(gone)) add_local(at->path().string(), entry.name + "/", true, list);
    } else {
      list.push_back(std::move(entry));
    }
  }
  if (error && !absent) fail_errno(error.value(), "cannot read directory '{}'", folder);
}

[[noreturn]] void cannot_rename(const std::string& from, const std::string& to, int error) {
  fail_output(error, "cannot rename '{}' to '{}'", from, to);
}

/// Copies the objects on the server, then removes them.
void rename_in_bucket(const std::string& from, const std::string& to) {
  const ObjectAddress a = address_of(from), b = address_of(to);
  if (!is_bucket(from) || !is_bucket(to) || a.bucket != b.bucket || a.profile != b.profile)
    fail("cannot rename '{}' to '{}': they are not in one bucket", from, to);
  const std::shared_ptr<S3Client> client = S3Client::of(a);
  if (is_file(from)) {
    client->copy(a.key, b.key);
    client->remove(a.key);
    return;
  }
  remove_folder(to);
  const std::string old_prefix = Prefix(from).key, new_prefix = Prefix(to).key;
  const std::vector<FolderEntry> files = files_below(from);
  for_each_at_once(files.size(), kRequestsAtOnce, [&](std::size_t i) {
    client->copy(old_prefix + files[i].name, new_prefix + files[i].name);
  });
  for_each_at_once(files.size(), kRequestsAtOnce,
                   [&](std::size_t i) { client->remove(old_prefix + files[i].name); });
}

}  // namespace

bool is_file(const std::string& path) {
  return size_of(path).has_value();
}

bool is_folder(const std::string& path) {
  if (is_bucket(path)) {
    try {
      Prefix(path).list(false, [](const ListedObject&) { throw FoundOne{}; });
    } catch (const FoundOne&) {  // One page is enough.
      return true;
    }
    return false;
  }
  if (is_remote(path)) return false;
  const std::optional<struct stat> facts = facts_of_path(path);
  return facts && S_ISDIR(facts->st_mode);
}

bool path_exists(const std::string& path) {
  return is_remote(path) ? is_folder(path) || is_file(path) : file_exists(path);
}

std::optional<std::uint64_t> size_of(const std::string& path) {
  if (is_remote(path)) {
    if (path.ends_with('/') || (is_bucket(path) && address_of(path).key.empty()))
      return std::nullopt;
    const std::shared_ptr<RemoteFile> file = RemoteFile::open_if_there(path);
    if (!file) return std::nullopt;
    return file->size();
  }
  const std::optional<struct stat> facts = facts_of_path(path);
  if (!facts || !S_ISREG(facts->st_mode)) return std::nullopt;
  return static_cast<std::uint64_t>(facts->st_size);
}

std::vector<FolderEntry> entries(const std::string& folder) {
  std::vector<FolderEntry> list;
  if (is_remote(folder))
    Prefix(folder).list(false, [&](const ListedObject& object) {
      const bool below = object.name.ends_with('/');
      list.push_back({object.name.substr(0, object.name.size() - (below ? 1 : 0)), below,
                      below ? 0 : object.bytes});
    });
  else
    add_local(folder, "", false, list);
  sort_by_name(list);
  return list;
}

std::vector<FolderEntry> files_below(const std::string& folder) {
  std::vector<FolderEntry> list;
  if (is_remote(folder))
    Prefix(folder).list(true, [&](const ListedObject& object) {
      list.push_back({object.name, false, object.bytes});
    });
  else
    add_local(folder, "", true, list);
  sort_by_name(list);
  return list;
}

bool remove_file(const std::string& path) {
  if (is_bucket(path)) {
    const ObjectAddress address = address_of(path);
    const std::shared_ptr<S3Client> client = S3Client::of(address);
    if (!client->head(address.key)) return false;
    client->remove(address.key);
    return true;
  }
  if (::unlink(path.c_str()) == 0) return true;
  if (errno != ENOENT && errno != ENOTDIR) fail_output(errno, "cannot remove '{}'", path);
  return false;
}

void remove_folder(const std::string& path) {
  if (is_bucket(path)) {
    const Prefix prefix(path);
    // The objects of all names, also those that stand for folders.
    std::vector<std::string> keys;
    prefix.client->list(prefix.key, true, [&](const ListedObject& object) {
      keys.push_back(prefix.key + object.name);
    });
    for_each_at_once(keys.size(), kRequestsAtOnce,
                     [&](std::size_t i) { prefix.client->remove(keys[i]); });
    return;
  }
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail_output(error.value(), "cannot remove '{}'", path);
}

void remove_if_empty(const std::string& folder) noexcept {
  if (!is_remote(folder)) ::rmdir(folder.c_str());
}

void rename_path(const std::string& from, const std::string& to) {
  if (is_remote(from) || is_remote(to)) return rename_in_bucket(from, to);
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST) cannot_rename(from, to, errno);
    remove_folder(to);
    if (std::rename(from.c_str(), to.c_str()) != 0) cannot_rename(from, to, errno);
  }
  sync_directory(dir_name(to));
}

std::string canonical_path(const std::string& path) {
  if (is_remote(path)) return without_slash(path);
  std::error_code error;
  const fs::path canonical = fs::weakly_canonical(path, error);
  return error ? path : canonical.string();
}

std::string local_folder_of(const std::string& folder) {
  if (!is_remote(folder)) return folder;
  const std::string name = hash_hex(canonical_path(folder)).substr(0, 16);
  std::string state;
  if (const auto given = variable("VFM_STATE"))
    state = *given;
  else if (const auto home = variable("XDG_STATE_HOME"))
    state = join_path(*home, "vfm");
  else if (const auto user = variable("HOME"))
    state = join_path(*user, ".local/state/vfm");
  else
    return scratch_folder_of(folder);
  std::string local = join_path(state, name);
  make_directories(local);
  return local;
}

std::string scratch_folder_of(const std::string& folder) {
  if (!is_remote(folder)) return folder;
  const std::string mine =
      (fs::temp_directory_path() / fmt::format("vfm-{}", ::geteuid())).string();
  if (::mkdir(mine.c_str(), 0700) != 0 && errno != EEXIST)
    fail_output(errno, "cannot create directory '{}'", mine);
  // Another user may have made it, to read or change what is written there.
  struct stat facts {};
  if (::lstat(mine.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) ||
      facts.st_uid != ::geteuid() || (facts.st_mode & 077) != 0)
    fail("'{}' is not a folder of this user alone; remove it, or set TMPDIR to another folder",
         mine);
  std::string local = join_path(mine, hash_hex(canonical_path(folder)).substr(0, 16));
  if (::mkdir(local.c_str(), 0700) != 0 && errno != EEXIST)
    fail_output(errno, "cannot create directory '{}'", local);
  return local;
}

void end_left_uploads(const std::string& folder) {
  static std::mutex mutex;
  static std::vector<std::string> done;
  if (!is_bucket(folder)) return;
  const std::string prefix = without_slash(folder) + "/";
  {
    const std::lock_guard lock(mutex);
    if (std::any_of(done.begin(), done.end(),
                    [&](const std::string& each) { return prefix.starts_with(each); }))
      return;
    done.push_back(prefix);
  }
  try {
    if (const int ended = end_left_uploads_below(folder); ended > 0)
      log_info("ended {} uploads below '{}' that killed programs left", ended, folder);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage) throw;  // No request can succeed.
    log_info("cannot look for uploads that killed programs left below '{}': {}", folder,
             error.what());
  }
}

}  // namespace vfm::io

// SPDX-License-Identifier: Apache-2.0
#include "io/growing_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/log.h"
#include "base/stop.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "io/remote/bucket_store.h"
#include "io/remote/remote_file.h"
#include "io/remote/upload.h"

namespace vfm::io {
namespace {

/// Names the file that has the version of the object from which the local file grew.
std::string version_path(const std::string& local) {
  return local + ".version";
}

/// Returns a text that changes when the file is written. Returns "" if there is no file.
std::string state_of_growing(const std::string& local) {
  struct stat s {};
  if (::stat(local.c_str(), &s) != 0) return "";
  return fmt::format("{} {} {}.{}", s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
}

void remove_local(const std::string& local) {
  remove_file(version_path(local));
  remove_file(local);
}

}  // namespace

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

bool replaces_by_version(const std::string& folder) {
  try {
    BucketStore(folder).check_conditions();
    return true;
  } catch (const Error& error) {
    log_info("{}; what two programs write there at the same time may be lost", error.what());
    return false;
  }
}

GrowingFile::GrowingFile(std::string path, bool lines)
    : path_(std::move(path)), local_(path_), lines_(lines) {
  if (!is_remote(path_)) return;
  local_ = join_path(local_folder_of(dir_name(path_)), base_name(path_));
  const std::shared_ptr<RemoteFile> object = RemoteFile::open_if_there(path_);
  // Without an object, a local file is the rest of a run that never came so far as to put() it.
  if (!object) {
    remove_local(local_);
    return;
  }
  version_ = object->version();
  const std::string noted = version_path(local_);
  const bool grew_here = is_file(local_) && is_file(noted) && read_file(noted) == version_;
  if (grew_here && !version_.empty()) return;
  remove_local(local_);
  AtomicFile copy = AtomicFile::await(local_);
  RemoteReader reader(object);
  std::vector<char> buffer(1 << 20);
  while (const std::size_t got = reader.read_some(buffer.data(), buffer.size()))
    copy.write(buffer.data(), got);
  copy.commit();
  write_file(noted, version_);
  put_state_ = state_of_growing(local_);
}

void GrowingFile::put() {
  if (local_ == path_) return;
  std::string state = state_of_growing(local_);
  if (state.empty() || state == put_state_) return;
  const bool guarded = lines_ && replaces_by_version(dir_name(path_));
  for (;; take_lines(), state = state_of_growing(local_)) {
    File file = File::open_regular(local_);
    ObjectUpload upload(path_);
    std::vector<char> buffer(1 << 20);
    while (const std::size_t got = file.read_some(buffer.data(), buffer.size())) {
      check_stop();
      upload.write(buffer.data(), got);
    }
    const auto made = guarded ? upload.commit_over(version_) : upload.commit();
    if (!made) continue;
    version_ = *made;
    write_file(version_path(local_), version_);
    put_state_ = state;
    return;
  }
}

/// Appends the object's lines that the local file lacks.
void GrowingFile::take_lines() {
  const std::optional<Store::Object> object = BucketStore(dir_name(path_)).read(base_name(path_));
  version_ = object ? object->version : "";
  if (!object) return;
  const std::string own = read_file(local_);
  const std::vector<std::string_view> known = lines_of(own);
  const std::unordered_set<std::string_view> there(known.begin(), known.end());
  std::string more;
  for (const std::string_view line : lines_of(object->contents))
    if (!there.contains(line)) more.append(line) += '\n';
  if (more.empty()) return;
  if (!own.empty() && !own.ends_with('\n')) more.insert(0, 1, '\n');
  const int fd = ::open(local_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) fail_output(errno, "cannot write '{}'", local_);
  File(fd, local_).write_all(more.data(), more.size());
}

void GrowingFile::remove() {
  remove_file(path_);
  if (local_ != path_) remove_local(local_);
  put_state_.clear();
  version_.clear();
}

}  // namespace vfm::io

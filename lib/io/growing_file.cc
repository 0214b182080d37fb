// SPDX-License-Identifier: Apache-2.0
#include "io/growing_file.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <memory>
#include <vector>

#include "base/error.h"
#include "base/stop.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
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

GrowingFile::GrowingFile(std::string path) : path_(std::move(path)), local_(path_) {
  if (!is_remote(path_)) return;
  local_ = join_path(local_folder_of(dir_name(path_)), base_name(path_));
  const std::shared_ptr<RemoteFile> object = RemoteFile::open_if_there(path_);
  // Without an object, a local file is the rest of a run that never came so far as to put() it.
  if (!object) {
    remove_local(local_);
    return;
  }
  const std::string noted = version_path(local_);
  const bool grew_here = is_file(local_) && is_file(noted) && read_file(noted) == object->version();
  if (grew_here && !object->version().empty()) return;
  remove_local(local_);
  AtomicFile copy = AtomicFile::await(local_);
  RemoteReader reader(object);
  std::vector<char> buffer(1 << 20);
  while (const std::size_t got = reader.read_some(buffer.data(), buffer.size()))
    copy.write(buffer.data(), got);
  copy.commit();
  write_file(noted, object->version());
  put_state_ = state_of_growing(local_);
}

void GrowingFile::put() {
  if (local_ == path_) return;
  const std::string state = state_of_growing(local_);
  if (state.empty() || state == put_state_) return;
  File file = File::open_regular(local_);
  ObjectUpload upload(path_);
  std::vector<char> buffer(1 << 20);
  while (const std::size_t got = file.read_some(buffer.data(), buffer.size())) {
    check_stop();
    upload.write(buffer.data(), got);
  }
  write_file(version_path(local_), upload.commit());
  put_state_ = state;
}

void GrowingFile::remove() {
  remove_file(path_);
  if (local_ != path_) remove_local(local_);
  put_state_.clear();
}

}  // namespace vfm::io

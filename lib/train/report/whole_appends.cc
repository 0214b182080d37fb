// SPDX-License-Identifier: Apache-2.0
#include "train/report/whole_appends.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/disk_errors.h"
#include "base/error.h"
#include "base/full_disk.h"
#include "base/log.h"

namespace vfm::train {

WholeAppends::WholeAppends(io::File file) : file_(std::move(file)), bytes_(file_.size()) {}

/// All that waits. If that fails, nothing of it is in the file, or what cannot be cut off again:
/// then the rest follows it.
void WholeAppends::put() {
  if (waiting_.empty()) return;
  const std::uint64_t size = file_.size();
  const std::size_t done =
      size > bytes_ ? std::min<std::size_t>(size - bytes_, waiting_.size()) : 0;
  try {
    file_.write_all(waiting_.data() + done, waiting_.size() - done);
  } catch (...) {
    if (::ftruncate(file_.fd(), static_cast<off_t>(bytes_)) != 0)
      log_info("cannot cut '{}': {}", file_.path(), errno_text(errno));
    throw;
  }
  bytes_ += waiting_.size();
  waiting_.clear();
  refused_ = false;
}

void WholeAppends::add(std::string_view record) {
  const std::lock_guard lock(mutex_);
  waiting_ += record;
  const SurvivesFullDisk survives;
  try {
    put();
  } catch (const Error& error) {
    if (!std::exchange(refused_, true))
      log_warning("{}; the run goes on, and writes these records later", error.what());
  }
}

void WholeAppends::sync() {
  {
    const std::lock_guard lock(mutex_);
    put();
  }
  if (::fsync(file_.fd()) != 0) fail_output(errno, "cannot write '{}'", file_.path());
}

}  // namespace vfm::train

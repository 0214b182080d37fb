// SPDX-License-Identifier: Apache-2.0
#include "train/stop_file.h"

#include <chrono>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/thread_stop.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"

namespace vfm::train {

StopFile::StopFile(const std::string& run)
    : path_(io::join_path(run, "stop")), thread_([this] { look(); }) {}

StopFile::~StopFile() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StopFile::look() {
  stop_thread_by(&ends_);
  const std::chrono::seconds between(io::is_bucket(path_) ? 10 : 1);
  bool said = false;
  while (!ends_) {
    try {
      found_ = io::is_file(path_);
    } catch (const Stopped&) {
      return;
    } catch (const Error& error) {
      if (!said) log_warning("{}", error.what());
      said = true;
    }
    if (found_) return request_wind_up();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, between, [&] { return ends_.load(); });
  }
}

void StopFile::obeyed() const {
  if (found_) io::remove_file(path_);
}

}  // namespace vfm::train

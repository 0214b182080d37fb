// SPDX-License-Identifier: Apache-2.0
#include "train/stop_file.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/left_behind.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/thread_stop.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"

namespace vfm::train {

struct StopFile::Looking {
  explicit Looking(std::string file) : path(std::move(file)) {}

  const std::string path;
  std::atomic<bool> found{false}, ends{false};
  std::mutex mutex;
  std::condition_variable changed;

  void look() {
    stop_thread_by(&ends);
    const std::chrono::seconds between(io::is_bucket(path) ? 10 : 1);
    bool said = false;
    while (!ends) {
      try {
        found = io::is_file(path);
      } catch (const Stopped&) {
        return;
      } catch (const Error& error) {
        if (!said) log_warning("{}", error.what());
        said = true;
      }
      if (found) return request_wind_up();
      std::unique_lock lock(mutex);
      changed.wait_for(lock, between, [&] { return ends.load(); });
    }
  }
};

StopFile::StopFile(const std::string& run)
    : looking_(std::make_shared<Looking>(io::join_path(run, "stop"))) {
  std::packaged_task<void()> look([looking = looking_] { looking->look(); });
  ended_ = look.get_future();
  thread_ = std::thread(std::move(look));
}

StopFile::~StopFile() {
  constexpr std::chrono::seconds kLongest{10};
  {
    const std::lock_guard lock(looking_->mutex);
    looking_->ends = true;
  }
  looking_->changed.notify_all();
  if (ended_.wait_for(kLongest) == std::future_status::ready) {
    thread_.join();
  } else {
    count_left_on_disk();
    thread_.detach();
  }
}

void StopFile::obeyed() const {
  if (looking_->found) io::remove_file(looking_->path);
}

}  // namespace vfm::train

// RUN/stop: a file by which a user, or another program, asks a run to save and end.
//
// A thread looks for it, so that no step waits for a disk or a store: once a second, in a bucket
// once in ten seconds.
// Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace vfm::train {

class StopFile {
 public:
  /// Looks for the file in the folder `run`, and calls request_wind_up() (base/stop.h) when it is
  /// there. An error is a warning, said once; it looks again.
  explicit StopFile(const std::string& run);
  /// Ends the thread, also in the middle of a request to a store.
  ~StopFile();
  StopFile(const StopFile&) = delete;
  StopFile& operator=(const StopFile&) = delete;

  /// Removes the file if it was there. Call it after the run was saved. Throws Error.
  void obeyed() const;

 private:
  void look();

  const std::string path_;
  std::atomic<bool> found_{false}, ends_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace vfm::train

// RUN/stop: a file by which a user, or another program, asks a run to save and end.
//
// A thread looks for it, so that no step waits for a disk or a store: once a second, in a bucket
// once in ten seconds.
// Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>
#include <memory>
#include <string>
#include <thread>

namespace vfm::train {

class StopFile {
 public:
  /// Looks for the file in the folder `run`, and calls request_wind_up() (base/stop.h) when it is
  /// there. An error is a warning, said once; it looks again.
  explicit StopFile(const std::string& run);
  /// Ends the thread, also in the middle of a request to a store. One whose disk hangs is left
  /// behind (base/left_behind.h).
  ~StopFile();
  StopFile(const StopFile&) = delete;
  StopFile& operator=(const StopFile&) = delete;

  /// Removes the file if it was there. Call it after the run was saved. Throws Error.
  void obeyed() const;

 private:
  struct Looking;

  const std::shared_ptr<Looking> looking_;  // The thread keeps it.
  std::future<void> ended_;
  std::thread thread_;
};

}  // namespace vfm::train

// What threads do of a checkpoint that is written beside steps (checkpoint_saver.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/checkpoint/snapshot_memory.h"

namespace vfm::train {

/// The work of a thread, and what comes of it. The thread keeps it, as it may be left behind.
/// Thread-safety: any thread, but for the results.
class SaveJob {
 public:
  std::atomic<bool> stop{false};              ///< asks the thread to end
  std::exception_ptr failure;                 ///< when it is done
  std::map<std::string, std::string> hashes;  ///< when it is done: name -> hash

  bool done() const;
  /// Returns whether it is done.
  bool wait(std::chrono::milliseconds most);
  void finish();

  /// The file, or the folder, that is being written.
  std::string at() const;
  void write(const std::string& path);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::string at_;
};

/// A file of the snapshot that this rank writes.
struct SnapshotFile {
  std::string name;
  std::span<std::byte> bytes;
};

/// Writes the files of a snapshot, in order, in a folder that may not be there, and names each in
/// memory when it is whole.
void write_snapshot(SaveJob& job, SnapshotMemory& memory, const std::vector<SnapshotFile>& files,
                    const std::string& folder);

/// Called by the thread of rank 0. An Error of `before`, which precedes COMPLETE, fails the
/// checkpoint; one of `after`, when the checkpoint is durable, is a warning.
struct AroundComplete {
  std::function<void()> before, after;
};

/// What rank 0 does when the files of all ranks are written.
struct Completion {
  std::map<std::string, std::string> hashes;          ///< of these files: name -> hash
  std::map<std::string, std::string> texts;           ///< of rank 0: name -> contents
  std::vector<std::pair<std::string, int>> expected;  ///< these files, and their writers
  AroundComplete around;
  std::string from, to;  ///< the folders where the checkpoint is built and where it goes
};

/// Writes the texts, and COMPLETE last, and gives the checkpoint its name. Throws Error unless rank
/// 0 sees the files of all ranks.
void complete(SaveJob& job, Completion completion);

/// "HASH  NAME", a line a file, sorted by name.
std::string lines_of(const std::map<std::string, std::string>& hashes);

}  // namespace vfm::train

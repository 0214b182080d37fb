// The host's memory for the files of a checkpoint that is being written (checkpoint_saver.h).
//
// The files lie in /dev/shm, if it has room: there they outlive a process that is killed, and the
// next start of the run on this host reads them in place of the disk. The folder vfm-UID-RUN, where
// RUN is a hash of the run's path, device and inode, is for this user alone. Its link "run" tells
// whoever cleans up which run it is of. A file that is whole has the hash of its contents, which
// COMPLETE lists, at the beginning of its name. Two snapshots take turns, as the earlier one is the
// newest complete one until the other is; their memory is kept for the next ones. Without room in
// /dev/shm a snapshot lies in the process's own memory, and there is one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace vfm::train {

inline constexpr const char* kMemoryFolder = "/dev/shm";

/// What starts of the run left in this host's memory: hash of the contents -> path. No other run
/// removes it for a day. Empty if the folder may be another user's. Thread-safety: any thread.
std::map<std::string, std::string> snapshot_files(const std::string& run,
                                                  const std::string& root = kMemoryFolder);
/// Removes that, for a start that has read it; and what other runs of this user left that changed
/// nothing for a day. A running one would lose no more than the reading of memory. Says nothing if
/// that fails. Thread-safety: any thread.
void remove_snapshots(const std::string& run, const std::string& root = kMemoryFolder) noexcept;

/// Copies into a snapshot: one thread does not have all of the memory's bandwidth.
void copy_by_threads(std::byte* to, std::span<const std::byte> from);

/// The snapshots of a rank. Thread-safety: one thread at a time.
class SnapshotMemory {
 public:
  /// `root` is the folder to try. `run` is there, unless it is in a bucket.
  SnapshotMemory(const std::string& run, int rank, std::string root = kMemoryFolder);
  /// Files in /dev/shm that are whole stay.
  ~SnapshotMemory();
  SnapshotMemory(const SnapshotMemory&) = delete;
  SnapshotMemory& operator=(const SnapshotMemory&) = delete;

  enum class Place { none, process, shared };
  /// Makes room for files of these sizes, over those of the snapshot before the last complete one,
  /// or returns Place::none. A second call in a row does nothing new. All ranks of this host take
  /// `of_host` bytes together. A tenth of the host's memory stays free.
  Place begin(const std::vector<std::uint64_t>& sizes, double of_host);
  /// The bytes of a file since begin(), in the order of `sizes`.
  std::span<std::byte> file(std::size_t i) const;
  /// The file is whole, and has this hash.
  void name(std::size_t i, const std::string& hash);
  /// Makes room for the other snapshot, if it is in /dev/shm: new memory takes longer than a copy.
  void prepare();
  /// The snapshot is that of a complete checkpoint: the next begin() leaves it.
  void keep();
  /// Removes the files, at the end of the run.
  void remove() noexcept;

 private:
  struct Part {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::string path, name;  // In /dev/shm: while it is filled, and since; "": not there.
  };
  using Parts = std::vector<Part>;
  Place choose(double of_host) const;
  bool open(Parts& parts);
  void withdraw(Parts& parts) const;
  void close(Parts& parts) noexcept;
  std::string run_link() const { return folder_ + "/run"; }

  const std::string root_, folder_, run_;
  const int rank_;
  std::vector<std::uint64_t> sizes_;
  Place place_ = Place::none;
  std::array<Parts, 2> snapshots_;
  std::size_t filled_ = 0, kept_ = 1;  // of these
};

}  // namespace vfm::train

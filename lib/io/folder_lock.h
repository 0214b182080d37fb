// Locks a folder whose files belong together, such as a training run, a dataset or latents, so that
// only one program writes the folder.
//
// On a disk the lock is on the folder itself (flock), and ends with the program. In a bucket it is
// an object ".vfm-lock" with the host and the process. It is created if absent. Its holder writes
// it again, with the next number, at each beat. Who finds an object that did not change for
// `patience` by the own clock, or whose process has ended on this machine, takes it over. A store
// without conditional writes is used without a lock, with a warning. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "io/file.h"

namespace vfm::io {

/// Longest wait of lock_folder() for another program on a disk.
inline constexpr std::chrono::seconds lock_patience{2};

/// Times of the lock of a bucket's folder, in seconds.
struct LockTimes {
  double beat = 10, patience = 40;
};

/// The lock of a folder, or none. Ends with the object.
class FolderLock {
 public:
  FolderLock();
  ~FolderLock();
  FolderLock(FolderLock&&) noexcept;
  FolderLock& operator=(FolderLock&&) noexcept;

 private:
  friend FolderLock lock_folder(const std::string& folder, const LockTimes& times);
  struct Held;  // in a bucket
  File file_;
  std::unique_ptr<Held> held_;
};

/// Makes the folder if needed, and locks it. Throws Error, which names the folder, if another
/// program keeps the lock for `lock_patience`, or writes the object again, and if a store cannot be
/// asked or allows no writes. In a bucket, ends uploads that killed programs left. If the lock is
/// lost to another program, the run ends with an error (base/run_end.h).
FolderLock lock_folder(const std::string& folder, const LockTimes& times = {});

}  // namespace vfm::io

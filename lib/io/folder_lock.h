// Locks a folder whose files belong together, such as a training run, a dataset or latents, so that
// only one program writes the folder.
//
// The lock is on the folder itself (flock), and ends with the program. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "io/file.h"

namespace vfm::io {

/// Longest wait of lock_folder() for another program.
inline constexpr std::chrono::seconds lock_patience{2};

/// Makes the folder if needed, and locks the folder until the result is destroyed. Throws Error,
/// which names the folder, if another program keeps the lock for `lock_patience`.
File lock_folder(const std::string& folder);

}  // namespace vfm::io

// Lets one program at a time use a folder whose files belong together: two that write a training
// run, a dataset or latents at once would skip or replace each other's files.
//
// The lock is on the folder itself (flock): no file is left behind, and one whose program has died
// is free. Thread-safety: free function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "io/file.h"

namespace vfm::io {

/// How long another program may keep a folder before it is refused.
inline constexpr std::chrono::seconds lock_patience{2};

/// Makes the folder if need be, and locks it until the result is gone. Throws Error, naming it, if
/// another program has it and keeps it for `lock_patience`.
File lock_folder(const std::string& folder);

}  // namespace vfm::io

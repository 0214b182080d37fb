// The paths in stored files and records. A stored file names other files relative to its own
// folder, so the names remain valid if all files are moved together. Thread-safety: any thread,
// while the working directory does not change.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::io {

/// Returns the working directory, or "" if it has been removed.
std::string working_folder();
/// Returns `path` relative to `folder`, such as "../raw/a.mp4". Returns URLs unchanged, except that
/// of two addresses of one bucket or host the first is named from the second. From a folder that is
/// an address, a path is named by its absolute path.
std::string name_from(const std::string& folder, const std::string& path);
/// Converts `name`, which is relative to `folder`, to a path relative to the working directory, or
/// to an address if `folder` is one. Returns absolute paths and URLs unchanged.
std::string named_from(const std::string& folder, const std::string& name);

}  // namespace vfm::io

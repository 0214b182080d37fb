// Paths that stored files and records contain. A stored file names other files relative to its own
// folder. Such names do not depend on the working directory, and stay right when all files move
// together.
// Thread-safety: any thread, while the working directory does not change.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::io {

/// Returns the working directory, or "" if it has been removed.
std::string working_folder();
/// Returns `path` relative to `folder`: "../raw/a.mp4". URLs stay unchanged.
std::string name_from(const std::string& folder, const std::string& path);
/// Is the inverse of name_from(): returns the path, from the working directory, of a `name`
/// relative to `folder`. Absolute paths and URLs stay unchanged.
std::string named_from(const std::string& folder, const std::string& name);

}  // namespace vfm::io

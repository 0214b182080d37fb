// Names of files in stored files and in records must not depend on the working directory. A file in
// a folder names others relative to that folder, so its names are the same wherever a tool was
// started, and stay true when all is moved.
// Thread-safety: any thread, while the working directory does not change.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::io {

/// The working directory; empty where it has been removed.
std::string working_folder();
/// The name of `path` in a file in `folder`: "../raw/a.mp4". Addresses are unchanged.
std::string name_from(const std::string& folder, const std::string& path);
/// The reverse: the path, from here, of `name` in a file in `folder`. Absolute names and addresses
/// are unchanged.
std::string named_from(const std::string& folder, const std::string& name);

}  // namespace vfm::io

// Names of files in what is kept, and in what travels: none of them means another file where the
// working directory is another. A file that stands in a folder names others from there, so it is
// the same wherever a tool was started, and stays true when all of it is moved.
// Thread-safety: any thread, as long as nobody changes the working directory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace vfm::io {

/// The working directory; empty where it has been removed.
std::string working_folder();
/// What a file in `folder` calls `path`: "../raw/a.mp4". An address stays as it is.
std::string name_from(const std::string& folder, const std::string& path);
/// What a file in `folder` calls `name`: the reverse, from here. An absolute name and an address
/// stay as they are.
std::string named_from(const std::string& folder, const std::string& name);

}  // namespace vfm::io

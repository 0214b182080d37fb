// Tells addresses ("s3://bucket/a.tar") from paths, and refuses addresses that a tool cannot use.
//
// Only videos and pictures may have addresses. All other inputs, and all outputs, are files and
// folders of this machine. Options and arguments are checked first (cli/named_files.h), records
// when they are read (io/manifest.h), recipes in train/recipe_file.h, and all other names when the
// file is opened or made (io/file.h). "./s3://bucket/x" is a path.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vfm {

/// Returns "https" for "https://...", in lower case, and "" for a path. "concat:a|b" is a path,
/// too.
std::string url_scheme(std::string_view name);

/// Returns why an address names no file or folder of this machine, and what to do, or "" for a
/// path. "s3:/bucket", which lost a slash, is an address, too.
std::string no_file_message(std::string_view name);

/// Returns why no video or picture is read from an address, and what to do, or "" for a path, for
/// http, https and file, and for the schemes in `protocols` (InputLimits::protocols).
std::string no_video_message(std::string_view name, std::span<const std::string> protocols);

/// Throws Error{refused} for an address. All code that opens or makes files calls this.
void refuse_address(std::string_view name);

}  // namespace vfm

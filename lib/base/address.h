// Names that are addresses ("s3://bucket/a.tar"), and what may be done with them.
//
// The rule of the house: outputs, and all inputs but videos and pictures, are files and folders of
// this machine. The system would take "s3://bucket/x" for a path, and make the folder "s3:".
// The options and arguments are checked first (cli/named_files.h), records where they are read
// (io/manifest.h), recipes in train/recipe_file.h, and all other names where the file is opened or
// made (io/file.h). "./s3://bucket/x" is a path.
// Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vfm {

/// "https" of "https://...", in lower case; "" for a path ("concat:a|b" is one too).
std::string url_scheme(std::string_view name);

/// Says why an address, also one that has lost a slash ("s3:/bucket"), names no file or folder of
/// this machine, and what to do; "" for a path.
std::string no_file_message(std::string_view name);

/// Says why no video or picture is read from an address, and what to do; "" for a path, for http,
/// https and file, and for the schemes in `protocols` (InputLimits::protocols).
std::string no_video_message(std::string_view name, std::span<const std::string> protocols);

/// Throws Error{refused} for an address. All code that opens or makes files calls this.
void refuse_address(std::string_view name);

}  // namespace vfm

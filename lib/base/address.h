// Distinguishes addresses ("s3://bucket/a.tar") from paths, and refuses addresses that a tool
// cannot use. "./s3://bucket/x" is a path.
//
// Only videos and pictures may have addresses. All other inputs, and all outputs, are files and
// folders of this machine.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vfm {

/// Returns the scheme of an address in lower case ("https" for "https://..."), or "" for a path.
/// "concat:a|b" is a path.
std::string url_scheme(std::string_view name);

/// Returns "" for a path. For an address, returns a message that says that files must be on this
/// machine, and what to do. "s3:/bucket" is also an address.
std::string no_file_message(std::string_view name);

/// Returns "" for a path, and for an address with the scheme http, https or file, or with a scheme
/// in `protocols` (InputLimits::protocols). For another address, returns a message that says why it
/// cannot be read, and what to do.
std::string no_video_message(std::string_view name, std::span<const std::string> protocols);

/// Throws Error{refused} for an address. All code that opens or makes files calls this function.
void refuse_address(std::string_view name);

}  // namespace vfm

// Distinguishes addresses ("s3://bucket/a.tar") from paths, and refuses addresses that a tool
// cannot use. "./s3://bucket/x" is a path.
//
// s3, msc, http and https are read wherever files are (io/remote/address.h). Addresses of other
// protocols are read only as videos, by FFmpeg, if --protocols allows it.
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

/// Returns "" for a path, and for an address of s3, msc, http or https. For another address, and
/// for "s3:/bucket", returns a message that says why it cannot be used, and what to do.
std::string no_file_message(std::string_view name);

/// Returns "" for a path, and for an address of s3, msc, http, https or file, or of a protocol in
/// `protocols` (InputLimits::protocols). For another address, returns a message that says why it
/// cannot be read, and what to do.
std::string no_video_message(std::string_view name, std::span<const std::string> protocols);

/// Throws Error{refused} for an address that no_file_message() refuses. All code that opens or
/// makes files calls this function.
void refuse_address(std::string_view name);

}  // namespace vfm

// Inside lib/media only: what kind of file an input may be, and what it may have opened.
//
// Both are allow lists. A container holds its own data; a playlist or a script names other files
// and addresses, and FFmpeg would open them whoever wrote them. So only containers are opened,
// whatever the file's name says, and nothing but the given file or address, unless --protocols
// (base/input_limits.h) names more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "media/libav.h"

namespace vfm::media {

/// The protocols, comma separated, that the input with this scheme may use; a name that FFmpeg does
/// not know when there are none. For AVFormatContext's and avio_open2's protocol_whitelist.
std::string allowed_protocols(const std::string& scheme);
/// The demuxers, comma separated, that may be used: AVFormatContext's format_whitelist.
std::string allowed_formats();

/// The first bytes of what `io` holds, which stays at its beginning.
std::string read_head(AVIOContext* io);
/// Which demuxer reads what `io` holds, from its bytes, `head` being the first of them, and from
/// `hint`, a name of which only the extension counts. `io` stays at its beginning. Throws Error
/// that names what `name` is when that is not allowed. Returns 0, or FFmpeg's error where it was
/// interrupted or could not read or recognise it.
int recognise_container(AVIOContext* io, std::string_view head, const std::string& name,
                        const std::string& hint, const AVInputFormat** found);

/// HEIC, AVIF and their relatives, by their first bytes.
bool is_heif(std::string_view head);

}  // namespace vfm::media

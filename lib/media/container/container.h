// Inside lib/media only: the kinds of input files that are allowed, and the further files that they
// may open.
//
// Both are allow lists. A container holds its own data; a playlist or a script names other files
// and addresses, and FFmpeg would open them whoever wrote them. So only containers are opened,
// whatever the file's name, and only the given file or address, unless --protocols
// (base/input_limits.h) allows more.
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

/// The first bytes of `io`, which stays at its beginning.
std::string read_head(AVIOContext* io);
/// Finds the demuxer for `io`, by its bytes, which begin with `head`, and by the extension of the
/// name `hint`. `io` stays at its beginning. Throws Error, saying what `name` is, if that is not
/// allowed. Returns 0, or FFmpeg's error where it was interrupted or could not read or recognise
/// it.
int recognise_container(AVIOContext* io, std::string_view head, const std::string& name,
                        const std::string& hint, const AVInputFormat** found);

/// HEIC, AVIF and their relatives, by their first bytes.
bool is_heif(std::string_view head);

}  // namespace vfm::media

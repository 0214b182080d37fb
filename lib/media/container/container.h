// Inside lib/media only: lists the allowed input formats, and the protocols through which inputs
// may open further files.
//
// A container includes its data. A playlist or script refers to other files and addresses, which
// FFmpeg would open. Only containers are therefore opened, whatever the file's name is. Only the
// given file or address is opened, unless --protocols (base/input_limits.h) allows more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "media/libav.h"

namespace vfm::media {

/// Returns the protocols, comma separated, that an input with this scheme may use, for
/// protocol_whitelist of AVFormatContext and avio_open2. If no protocol is allowed, returns a name
/// that FFmpeg does not know.
std::string allowed_protocols(const std::string& scheme);
/// Returns the allowed demuxers, comma separated, for AVFormatContext's format_whitelist.
std::string allowed_formats();

/// Returns the first bytes of `io`, whose position stays at the beginning.
std::string read_head(AVIOContext* io);
/// Finds the demuxer for `io` by its bytes, which begin with `head`, and the extension of the name
/// `hint`. The position of `io` stays at the beginning. Throws Error if the format is not allowed;
/// the message says what `name` is. Returns 0, or FFmpeg's error if FFmpeg was interrupted, or
/// could not read or recognise `io`.
int recognise_container(AVIOContext* io, std::string_view head, const std::string& name,
                        const std::string& hint, const AVInputFormat** found);

/// Returns true if a file that begins with `head` is HEIC, AVIF or a related format.
bool is_heif(std::string_view head);

}  // namespace vfm::media

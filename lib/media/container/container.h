// Inside lib/media only: lists the allowed input formats, and the protocols through which inputs
// may open further files.
//
// The pictures and sound of a container must be in the same file. Another file or address is opened
// only if --protocols (base/input_limits.h) allows its protocol.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "media/libav.h"

namespace vfm::media {

/// Returns the protocols that an input with this scheme may use, separated by commas, for
/// protocol_whitelist of AVFormatContext and avio_open2. If no protocol is allowed, returns a name
/// that FFmpeg does not know.
std::string allowed_protocols(const std::string& scheme);
/// Returns the allowed demuxers, separated by commas, for format_whitelist of AVFormatContext.
std::string allowed_formats();

/// Returns the first bytes of `io`, and moves back to the beginning.
std::string read_head(AVIOContext* io);
/// Finds the demuxer for `io` by the bytes of `io`, which begin with `head`, and by the extension
/// of `hint`. `io` must be at its beginning, and is there again after the call. Throws Error with
/// `name` in the message if the format is not allowed. If FFmpeg was interrupted, or could not read
/// or recognise `io`, returns FFmpeg's error. Otherwise returns 0.
int recognise_container(AVIOContext* io, std::string_view head, const std::string& name,
                        const std::string& hint, const AVInputFormat** found);

/// Returns true if a file that begins with `head` is HEIC, AVIF or a related format.
bool is_heif(std::string_view head);

}  // namespace vfm::media

// A small picture of a clip for an HTML page. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace vfm::dataset {

/// Returns a JPEG file, at most 192 x 144 pixels, of the clip's middle frame, or of the 48th frame
/// if the clip is long. The same clip gives the same bytes. Returns an empty text in a build
/// without FFmpeg. `name` must end with the container's extension. Throws Error, which names
/// `name`, if no frame can be decoded.
std::string clip_picture(std::string_view bytes, const std::string& name);

}  // namespace vfm::dataset

// Finds the members of a sample that are videos and still pictures, by their names.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "shard/sample.h"

namespace vfm::shard {

/// Whether a member of this extension is a video or a still picture, by its last part ("mp4",
/// "left.mp4"); and whether it is a still picture.
bool is_media_extension(std::string_view extension);
bool is_still_extension(std::string_view extension);
/// Whether a name's extension is that of a video or a still picture.
bool is_media_name(const std::string& path);

/// The member of `sample` that is a video, else a still picture, or null. The first of several
/// counts, and "mp4" before "left.mp4".
const Member* media_member(const Sample& sample);
/// The message for a sample that has none: "has no video and no picture ...".
std::string no_media(const Sample& sample);

}  // namespace vfm::shard

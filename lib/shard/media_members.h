// Finds the members of a sample that are videos and still pictures, by their names.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "shard/sample.h"

namespace vfm::shard {

/// is_media_extension() returns whether the extension is of a video or still picture.
/// is_still_extension() returns whether it is of a still picture. The last part of the extension
/// decides ("mp4", "left.mp4").
bool is_media_extension(std::string_view extension);
bool is_still_extension(std::string_view extension);
bool is_media_name(const std::string& path);

/// Returns the first video of `sample`, otherwise its first still picture, otherwise null. "mp4"
/// comes before "left.mp4".
const Member* media_member(const Sample& sample);
/// Returns an error message for a sample without media: "has no video and no picture ...".
std::string no_media(const Sample& sample);

}  // namespace vfm::shard

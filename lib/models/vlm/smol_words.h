// What SmolVLM and Idefics3 read where a picture or a video is in a message.
//
// A tile is a mark, and as many tokens "<image>" as it has tokens. Tiles of a picture are marked by
// row and column, all of it as global; of a video each frame is a picture with its time, after a
// line that says how many there are and how long the video is.
// A template writes "<image>" or "<video>" for them. One that writes nothing for a video, as that
// of a folder may which is older than its processor, is not asked: SmolVLM's processor has a
// message of its own for that, which is used instead.
// Source: transformers 5.24, SmolVLMProcessor; numbers in words as its num2words has them.
// Pure. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "models/vlm/smol_input.h"

namespace vfm::models {

inline constexpr std::string_view kSmolImage = "<image>", kSmolVideo = "<video>";

/// "one hundred and twenty-one"; 0 to 999,999.
std::string count_in_words(int count);

/// A still picture of such tiles, of `tokens` each.
std::string smol_picture_text(const SmolTiles& tiles, int tokens);

/// A video of `seconds` with frames at `times`, in seconds from its begin.
std::string smol_video_text(std::span<const double> times, double seconds, int tokens);

/// A user's message with a video before `prompt`, up to where the answer begins.
std::string smol_video_message(std::string_view prompt);

/// How often `part` is in `text`.
std::size_t count_parts(std::string_view text, std::string_view part);
/// `text` with `by` instead of each `part`.
std::string replace_parts(std::string_view text, std::string_view part, std::string_view by);

}  // namespace vfm::models

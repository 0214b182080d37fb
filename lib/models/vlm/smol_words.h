// The text that SmolVLM and Idefics3 read in place of a picture or video in a message.
//
// A tile is a mark followed by one token "<image>" per token of the tile. Marks of a picture's
// tiles name row and column; the mark of the whole picture is global. A frame of a video is a
// picture with its time. Before the frames a line gives their number and the length of the video.
// A template writes "<image>" or "<video>" for them. A folder that is older than its processor may
// have a template that writes nothing for a video. Then the message that SmolVLM's processor has
// for this case is used instead.
// Source: transformers 5.24, SmolVLMProcessor; numbers in words as by its num2words.
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

/// The text of a still picture with these tiles of `tokens` tokens each.
std::string smol_picture_text(const SmolTiles& tiles, int tokens);

/// The text of a video of `seconds` with frames at `times`, in seconds from its beginning.
std::string smol_video_text(std::span<const double> times, double seconds, int tokens);

/// The text of a user's message with a video before `prompt`, up to where the answer begins.
std::string smol_video_message(std::string_view prompt);

/// Number of times that `text` contains `part`.
std::size_t count_parts(std::string_view text, std::string_view part);
/// `text` with each `part` replaced by `by`.
std::string replace_parts(std::string_view text, std::string_view part, std::string_view by);

}  // namespace vfm::models

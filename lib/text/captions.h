// Reads caption files beside a video, in SubRip (.srt) or JSON, and finds the caption of a span.
//
// Hostile input gives fewer captions or an Error, never a crash. Thread-safety: pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::text {

/// A caption from `begin` to `end`, in seconds of the video. The text is UTF-8 in one line.
struct Cue {
  double begin = 0, end = 0;
  std::string caption;
};

struct SubRip {
  std::vector<Cue> cues;  ///< Cues sorted by time.
  int malformed = 0;      ///< Number of lines with an arrow but invalid times.
};

/// Reads the text of an .srt file. Accepts what players accept: any line ends, missing numbers or
/// blank lines, '.' for ',', missing hours, and position settings after the times. Removes mark-up
/// (<i>, {\an8}), and joins the lines of a cue with a space.
SubRip parse_srt(std::string_view utf8);

/// Returns the captions in a .json file, or in a field of a record. The JSON is "text", {"caption":
/// "text"}, [{"start": s, "end": s, "caption": "text"}, ...] with times in seconds, or {"captions":
/// [...]}. The first two forms give one cue for the whole video, without end. A list of texts gives
/// one such cue, with the first text that is not empty. For other JSON, throws Error, which names
/// `what`.
std::vector<Cue> captions_of_json(const Json& value, std::string_view what);

/// Returns the caption of the span [begin, end): the texts of all cues in the span, in order,
/// joined with a space. A cue is in the span if the overlap is at least half of the cue or half of
/// the span. Returns nullopt if no cue is in the span.
std::optional<std::string> caption_of_span(const std::vector<Cue>& cues, double begin, double end);

}  // namespace vfm::text

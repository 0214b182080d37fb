// Caption files beside a video: SubRip (.srt) and JSON, and their captions of a span.
//
// Pure: bytes in, captions out; finding and reading the files is the caller's. Hostile input gives
// fewer captions or an Error, never a crash.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace vfm::text {

/// A caption from `begin` to `end`, in seconds of the source. UTF-8, cleaned to one line.
struct Cue {
  double begin = 0, end = 0;
  std::string caption;
};

struct SubRip {
  std::vector<Cue> cues;  ///< by time
  int malformed = 0;  ///< lines with an arrow whose times cannot be read, or end before they begin
};

/// Reads the text of an .srt file. It is as lenient as players: any line ends, missing numbers or
/// blank lines, '.' for ',', hours left out, position settings after the times. Mark-up (<i>,
/// {\an8}) is removed, lines of a cue are joined by a space.
SubRip parse_srt(std::string_view utf8);

/// Captions of a .json file, or of a field of a record: "text", {"caption": "text"} (the whole
/// video: one cue without end), or [{"start": s, "end": s, "caption": "text"}, ...] in seconds,
/// also as {"captions": [...]}. A list of texts is several captions of the whole video: takes the
/// first that is not empty. Throws Error naming `what`.
std::vector<Cue> captions_of_json(const Json& value, std::string_view what);

/// The caption of the span [begin, end): the cues that belong to it, in order, joined by a space. A
/// cue belongs if at least half of the shorter of the two, cue and span, is in both; so a cue that
/// runs a few frames over a cut is not in the next clip's caption. Nothing if no cue belongs.
std::optional<std::string> caption_of_span(const std::vector<Cue>& cues, double begin, double end);

}  // namespace vfm::text

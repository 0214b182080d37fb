// Notes of finished parts: what is needed of each part to choose the next one, as names of empty
// objects. One listing of a folder reads the notes of all parts, where each marker would have to be
// opened.
//
//   DIR/parts/TOOL/notes/00003-1764489750-488.217-gpu
//     the part, the time at its end (seconds since 1970, by the host's clock), the seconds that it
//     took, and the kind of node that did it
//
// A note is written after the marker and removed before it. So a part without a note may have a
// marker. Only if somebody removed a marker by hand, a part has a note without a marker.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/store.h"

namespace vfm::parts {

struct PartNote {
  int part = 0;
  std::int64_t ended = 0;
  double seconds = 0;
  std::string node_kind;  ///< PartChoice::node_kind of the process that did the part.
};

/// The folder of the notes in that of the tool.
inline constexpr std::string_view kNotes = "notes";
/// Returns the note of this name, or nullopt for another name.
std::optional<PartNote> parse_note(std::string_view name);

/// Writes a note. `store` is that of DIR/parts. Throws Error.
void write_note(io::Store& store, const std::string& tool, const PartNote& note);
/// Removes the notes of a part.
void remove_notes(io::Store& store, const std::string& tool, int part);
/// Removes temporary files that killed processes left.
void sweep_notes(io::Store& store, const std::string& tool);
/// Returns all notes of a tool, such as "clip", in order of the parts.
std::vector<PartNote> read_notes(const io::Store& store, const std::string& tool);

}  // namespace vfm::parts

// Makes a folder of vfm-generate complete, after all its parts are (generate/part_clips.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "io/manifest.h"

namespace vfm::generate {

/// A file of a part: for each record of its manifest, a line with the number of its prompt.
inline constexpr const char* kPlaces = "places.jsonl";
/// The member of a marker's versions with a hash of the model and the options.
inline constexpr const char* kSettings = "settings";

/// Writes contact-sheet.png and errors.jsonl, and then the record of each clip to `manifest`, in
/// order of the prompts. Throws Error if a part is not complete, or if two parts made clips of one
/// name. Throws Stopped.
void join_generated(const std::string& directory, io::ManifestWriter& manifest);

}  // namespace vfm::generate

// The verb shots of vfm-clip: lists the changes of shot of each video, and writes no clips.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "clip/options.h"
#include "io/manifest.h"
#include "share/slots.h"

namespace vfm::clip {

/// Parses the scores of --thresholds, at most 100: "0.3,0.4,0.5", or "0.3:0.5:0.1" for the same.
/// Throws Error{usage}.
std::vector<double> parse_thresholds(const std::string& text);

/// `vfm-clip shots`: prints a {"kind":"shots",...} line for each video. With `thresholds` it prints
/// a line with "threshold" for each threshold. Warns of videos that fail, and returns their number.
/// Uses recipe, inputs, hardware, shot_format, thresholds, print_table and explain.
long list_shots(const ClipOptions& options, share::Slots& slots, Progress& progress,
                io::ManifestWriter& manifest);

}  // namespace vfm::clip

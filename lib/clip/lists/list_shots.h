// The verb `vfm-clip shots`, which lists the changes of shot of each video and writes no clips.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "clip/options.h"
#include "io/manifest.h"
#include "share/slots.h"

namespace vfm::clip {

/// Parses at most 100 scores of --thresholds, such as "0.3,0.4,0.5". The text "0.3:0.5:0.1" (from,
/// to, step) gives the same scores. Throws Error{usage}.
std::vector<double> parse_thresholds(const std::string& text);

/// Prints a {"kind":"shots",...} line for each video, or for each video and threshold. Warns of
/// videos that fail, and returns the number of failures. Uses these members of `options`: recipe,
/// inputs, hardware, shot_format, thresholds, print_table and explain.
long list_shots(const ClipOptions& options, share::Slots& slots, Progress& progress,
                io::ManifestWriter& manifest);

}  // namespace vfm::clip

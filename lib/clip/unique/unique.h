// The verb unique of vfm-clip: finds sources that show the same content, before they are cut.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/progress.h"
#include "clip/options.h"
#include "io/manifest.h"
#include "share/slots.h"

namespace vfm::clip {

/// `vfm-clip unique`: decodes each source once for its signature, and compares all signatures.
/// Pictures are compared only by their bytes. Writes DIR/sources.jsonl, a line for each source, and
/// DIR/duplicates.jsonl, a line for each pair. Then prints, in input order, the unchanged records
/// of the sources that stay (clip/unique/duplicate_groups.h). Other kinds of records pass. Writes
/// failures to DIR/errors.jsonl, and returns their number. Memory: the index
/// (clip/unique/duplicate_index.h) and about a kilobyte for each source. Throws Error if no source
/// is usable or the input is incomplete; Stopped. Uses recipe.stream, recipe.deinterlace, inputs,
/// directory, force, hardware and unique_share.
long find_unique(const ClipOptions& options, share::Slots& slots, Progress& progress,
                 io::ManifestWriter& manifest);

}  // namespace vfm::clip

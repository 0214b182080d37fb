// The verb `vfm-clip unique`, which finds sources that show the same content, before clips are cut.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/progress.h"
#include "clip/options.h"
#include "io/manifest.h"
#include "share/slots.h"

namespace vfm::clip {

/// Decodes each source once for its signature, and compares all signatures. Picture files are
/// compared only by their bytes. Writes DIR/sources.jsonl with a line for each source, and
/// DIR/duplicates.jsonl with a line for each pair of equal files and each common stretch. Prints
/// the records of the kept sources (clip/unique/duplicate_groups.h), and all records of other
/// kinds, unchanged and in input order. Writes failures to DIR/errors.jsonl, and returns the number
/// of failures. Memory: the index (clip/unique/duplicate_index.h) and about a kilobyte for each
/// source. Throws Stopped, and Error if no source is usable or the input is incomplete. Uses these
/// members of `options`: recipe.stream, recipe.deinterlace, inputs, directory, force, hardware and
/// unique_share.
long find_unique(const ClipOptions& options, share::Slots& slots, Progress& progress,
                 io::ManifestWriter& manifest);

}  // namespace vfm::clip

// The library behind vfm-clip, which cuts videos to clips and writes shards of clips.
//
// Each video is decoded once. Memory for a video is one clip and about a hundred frames, whatever
// the length of the video. If there are fewer videos than slots (share/slots.h), several clips of a
// video are encoded in parallel (clip/cut/crew.h). The outputs do not depend on the number of
// threads.
//
// The outputs of a video are DIR/<h>-00000.tar, ... and DIR/<h>.json, where <h> is 16 hex digits of
// a hash of the video's contents. DIR/<h>.json is written last. A later run skips the video if
// DIR/<h>.json has the same settings and all shards exist (shard/receipt.h). The complete shards of
// a killed run are kept. Neighbouring pictures of the input share shards and one DIR/<h>.json. If
// the input has many videos, small videos share shards, too (clip/store/joined.h).
// With ClipOptions::part, one part of a list is cut (clip/part.h, clip/store/listed.h).
// DIR/.vfm-clip.ledger stores the hashes of sources (io/hash_ledger.h), so a run without new work
// reads no source.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "base/progress.h"
#include "clip/options.h"
#include "io/manifest.h"
#include "share/slots.h"

namespace vfm::clip {

/// Name of the ledger in the output folder, or in ListedPart::unfinished.
inline constexpr const char* kLedger = ".vfm-clip.ledger";

/// Returns the settings that decide the bytes of clips, except the source and its spans.
Json clip_settings(const ClipOptions& options);

/// Chooses encoders that were not named. Opens all encoders, so that a missing encoder or a wrong
/// preset or depth fails before any work. Throws Error{usage}. run() does so, too.
void choose_encoders(ClipRecipe& recipe);

/// Throws Error{usage} if an encoder of the recipe is missing, or does not support the preset,
/// quality or depth. run() also checks GPU encoders.
void check_encoders(ClipRecipe recipe);

/// Writes a {"kind":"shard",...} record to standard output for each shard, in input order, when the
/// shard is on disk and its video is finished. Records of kinds other than "video" are passed on
/// unchanged. Writes failures to DIR/errors.jsonl, and returns the number of failures. For a part,
/// gives records and failures to ListedPart instead, and returns 0. Throws
/// Stopped, Error{usage} if the recipe is impossible, and, except for a part, Error if no clip was
/// made.
long run(const ClipOptions& options, share::Slots& slots, Progress& progress,
         io::ManifestWriter& manifest);

}  // namespace vfm::clip

// The library behind vfm-clip: cuts videos to clips, and writes shards of clips.
//
// Each video is decoded once. In that pass shots are found, clips are measured and encoded, and
// shards are written. Memory holds one clip and about a hundred frames, however long the video is.
// Videos run in parallel. If there are fewer videos than slots, several clips of a video are
// encoded at once, from frames in memory (clip/cut/crew.h). Outputs do not depend on the number of
// threads.
//
// A video's outputs are DIR/<h>-00000.tar, ... and DIR/<h>.json, where <h> is 16 hex digits of its
// contents' hash. The json is written last. A video is finished, and then skipped, if the json has
// the same settings and all shards exist (shard/receipt.h). Complete shards of an unfinished video
// are kept. Pictures share shards in input order, with one DIR/<h>.json. Small videos also share
// shards, if there are many (clip/store/joined.h). DIR/.vfm-clip.ledger keeps the hashes of sources
// (io/hash_ledger.h), so a run that has nothing to do reads no source.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/progress.h"
#include "clip/options.h"
#include "io/manifest.h"
#include "share/slots.h"

namespace vfm::clip {

/// Throws Error{usage} if an encoder of the recipe is missing, or does not take the preset, quality
/// or depth. run() makes the same check, and more for GPU encoders, before any work.
void check_encoders(ClipRecipe recipe);

/// Writes a {"kind":"shard",...} record to standard output for each shard, in input order, when the
/// shard is on disk and its video is finished. Records of other kinds than video pass unchanged.
/// Writes failures to DIR/errors.jsonl, and returns their number. Throws Error{usage} for an
/// impossible recipe, Error if no clip was made, and Stopped.
long run(const ClipOptions& options, share::Slots& slots, Progress& progress,
         io::ManifestWriter& manifest);

}  // namespace vfm::clip

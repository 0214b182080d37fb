// vfm-clip --part: does the parts of a list (parts/clip_list.h).
//
// Each unit of the part's list gives its outputs in subfolders of DIR (clip/store/listed.h). The
// part's own files are in DIR/parts/clip/00003/ (parts/part_run.h): manifest.jsonl, errors.jsonl,
// and, while a process works at the part, unfinished-HOST-PID-... with its ledger and the clips of
// incomplete buckets. The next process that does the part takes these clips over.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/progress.h"
#include "clip/options.h"
#include "io/manifest.h"
#include "parts/part_choice.h"
#include "share/slots.h"

namespace vfm::clip {

/// Does one part, or parts until all are done, and prints the records of their shards. Prints the
/// manifest of a part that is done already. Uses the size of shards of the list. A bad input is a
/// result, which errors.jsonl and the marker tell. Returns what shard::for_each_part() returns.
/// Throws what run() and parts::PartRun throw.
long run_parts(const ClipOptions& options, const parts::PartChoice& choice, share::Slots& slots,
               Progress& progress, io::ManifestWriter& manifest);

}  // namespace vfm::clip

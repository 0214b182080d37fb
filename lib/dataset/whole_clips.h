// Makes a folder of clips complete, after all parts of vfm-clip and of the programs that add
// columns are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "io/manifest.h"

namespace vfm::dataset {

/// Writes into the folder of clips, or of a dataset, what is of all parts:
///   clips.jsonl       the record of each shard, in the order of the list, with all columns. Files
///                     are named relative to the folder (shard/listed_clips.h). Only for clips.
///   duplicates.jsonl  {"source":…,"first":…,"source_hash":…} for each source with the contents of
///                     an earlier one, if there are any. Only for clips.
///   errors.jsonl      the errors of the parts of vfm-clip
///   caption-errors.jsonl, embed-errors.jsonl  those of the programs that have parts there
/// Then writes the records to `manifest`, for a dataset those of the last program. With `prune`,
/// removes shards, indexes and columns of vfm-clip that no part wrote. Does nothing again if all is
/// done. Throws Error if a part is not complete, if a column's parts lack a shard of the clips, or
/// if a file that a part wrote is missing. Throws Stopped.
void join_clips(const std::string& directory, bool prune, io::ManifestWriter& manifest);

}  // namespace vfm::dataset

// The shards of one part of a work (parts/run_file.h): those that parts of vfm-clip wrote, or those
// whose file names have a certain hash.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/manifest.h"
#include "parts/run_file.h"
#include "shard/listed_clips.h"

namespace vfm::shard {

struct PartShards {
  int part = 0, parts = 1;
  std::string clips;            ///< Folder of the parts of vfm-clip, or "" for "names".
  std::vector<int> clip_parts;  ///< The parts of vfm-clip, with `clips`.
  /// If not null, shards that do not count are left out, and the records of others have
  /// "duplicate_hashes".
  std::shared_ptr<const LaterSources> later;

  /// Returns whether the part has this record. Without `clips` alone. Records that are no shards
  /// are of no part.
  bool has(const io::Record& record) const;
};

/// Returns the digest of what decides the outputs of a part of `run` with `clips`: the settings,
/// the shards, as the markers of vfm-clip tell, and the columns `reads`. Markers tell of columns of
/// programs in "after", and the json beside the tar of others, such as X.caption.json. With
/// `later`, also of the sources that do not count. No tar is read whose json fits its size. Throws
/// Error.
std::string digest_of(const PartShards& shards, const parts::RunFile& run,
                      const std::vector<std::string>& reads);

/// Looks for the shards and columns that the parts in need of a part of `run` wrote, as their
/// markers tell. Waits for those that other hosts have just written (io/late_files.h). Returns a
/// fault that may pass for each that does not come. Throws Error and Stopped.
std::vector<io::Fault> late_inputs(const PartShards& shards, const parts::RunFile& run);

}  // namespace vfm::shard

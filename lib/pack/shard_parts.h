// Writes the latents of one shard at a time, with a tar for each split of its samples.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "io/error_log.h"
#include "pack/feed.h"
#include "pack/folder.h"
#include "pack/notes.h"
#include "pack/sample.h"
#include "shard/writer.h"

namespace vfm::pack {

class ShardParts {
 public:
  /// `folder` must outlive the object.
  explicit ShardParts(PackFolder& folder) : folder_(folder) {}

  /// Adds the latents of a clip to its split.
  void add(const ClipShard& shard, const std::string& split, ClipLatents& clip);
  /// Writes the parts and their notes to disk, and starts a new shard. If the shard has no samples,
  /// only notes are written. `errors` are the errors of the shard. If the size limit of members may
  /// have caused an error, `max_member` is this limit.
  std::map<std::string, FinishedPart> write(const ClipShard& shard, const Json& made_from,
                                            std::vector<io::Fault> errors,
                                            std::optional<std::uint64_t> max_member);

 private:
  struct Part {
    ShardNotes notes;
    std::optional<shard::Writer> writer;
  };
  void put(Part& part, const ClipShard& shard, const std::string& split, LatentOutput& latent);

  PackFolder& folder_;
  std::map<std::string, Part> parts_;  // by split
};

}  // namespace vfm::pack

// vfm-embed index: makes an index over the vectors of shards, or adds shards to one.
//
// Each vector is read once, in pieces of a shard, in parallel. The file depends only on the vectors
// and their order, so it has the same bytes at any -j. A new file's centres and codes are made from
// vectors evenly spaced in the input, and kept when shards are added: then only the new shards are
// read. Shards that have gone are taken out, changed ones read again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "columns/search/stored_vectors.h"
#include "io/manifest.h"
#include "shard/reader.h"
#include "share/slots.h"

namespace vfm::columns {

struct IndexOptions {
  std::string path;                 ///< of the index
  std::vector<std::string> inputs;  ///< as shard/shard_input.h takes them
  VectorKind kind = VectorKind::video;
  bool force = false;  ///< make it again even if it exists
  shard::ReadLimits limits;
};

/// The number of lists for `vectors`: two thirds of the root, 4096 at most.
std::size_t index_lists(std::uint64_t vectors);

/// Writes {"kind":"index","path":…,"vectors":…,"shards":…,"added":…,"dropped":…} to the manifest;
/// returns the number of shards and kinds of vectors that are not in the index, each warned of.
/// Waits for another program that writes the index. Throws Error if nothing can be indexed, or the
/// file is not an index, damaged, or of the other kind of vectors; Stopped.
long build_index(const IndexOptions& options, share::Slots& slots, Progress& progress,
                 io::ManifestWriter& manifest);

}  // namespace vfm::columns

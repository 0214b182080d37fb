// vfm-embed index: makes an index over the vectors of shards, or adds shards to one.
//
// Each vector is read once, in pieces of a shard, in parallel; what it becomes depends on the
// vectors and their order alone, so the file has the same bytes at any -j. Centres and codes are
// made when the file is new, from vectors evenly spaced in the input, and kept when shards are
// added: then these alone are read. What has changed or gone since is taken out or read again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "base/slots.h"
#include "columns/stored_vectors.h"
#include "io/manifest.h"
#include "shard/reader.h"

namespace vfm::columns {

struct IndexOptions {
  std::string path;                 ///< of the index
  std::vector<std::string> inputs;  ///< as shard/shard_input.h takes them
  VectorKind kind = VectorKind::video;
  bool force = false;  ///< make it anew even if it is there
  shard::ReadLimits limits;
};

/// Lists that so many vectors are divided into: two thirds of their root, 4096 at most.
std::size_t index_lists(std::uint64_t vectors);

/// Writes {"kind":"index","path":…,"vectors":…,"shards":…,"added":…,"dropped":…} to the manifest;
/// returns the number of shards and kinds of vectors that are not in the index, each warned of.
/// Waits for another program that writes the index. Throws Error: there is nothing to index, or the
/// file is no index, damaged, or of the other kind of vectors; Stopped.
long build_index(const IndexOptions& options, Slots& slots, Progress& progress,
                 io::ManifestWriter& manifest);

}  // namespace vfm::columns

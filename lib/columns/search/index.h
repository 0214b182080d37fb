// vfm-embed index: makes an index of the vectors in shards, or updates one.
//
// Shards are read in parallel; the file has the same bytes at any -j. A new index's centres and
// code words are learned from vectors at even distances in the input. An update keeps centres and
// code words, reads only new and changed shards, and removes missing shards.
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
  std::string path;                 ///< the index
  std::vector<std::string> inputs;  ///< forms: shard/shard_input.h
  VectorKind kind = VectorKind::video;
  bool force = false;  ///< make a new index even if one exists
  shard::ReadLimits limits;
};

/// Returns the number of lists in an index of `vectors` vectors: two thirds of the square root,
/// from 1 to 4096.
std::size_t index_lists(std::uint64_t vectors);

/// Writes {"kind":"index","path":…,"vectors":…,"shards":…,"added":…,"dropped":…} to the manifest.
/// Returns the number of warnings: shards and kinds of vectors that are not in the index. Waits for
/// another program that writes the index. Throws Error if nothing can be indexed, or the file is
/// not an index, is damaged, or is of a VectorKind other than `kind`, and Stopped.
long build_index(const IndexOptions& options, share::Slots& slots, Progress& progress,
                 io::ManifestWriter& manifest);

}  // namespace vfm::columns

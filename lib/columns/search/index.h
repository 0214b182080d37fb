// vfm-embed index: makes or updates an index of the vectors in shards.
//
// The index does not depend on the number of parallel jobs. A new index learns centres and code
// words from evenly spaced vectors of the input. An update keeps centres and code words, reads only
// new and changed shards, and removes missing shards.
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
  std::string path;                 ///< Path of the index.
  std::vector<std::string> inputs;  ///< Inputs in the forms of shard/shard_input.h.
  VectorKind kind = VectorKind::video;
  bool force = false;  ///< If true, an existing index is replaced.
  shard::ReadLimits limits;
};

/// Returns the number of lists in an index of `vectors` vectors: two thirds of the square root of
/// `vectors`, but at least 1 and at most 4096.
std::size_t index_lists(std::uint64_t vectors);

/// Writes the index, and the record
/// {"kind":"index","path":…,"vectors":…,"shards":…,"added":…,"dropped":…} to the manifest. Waits
/// while another program writes the index. Warns of shards and kinds of vectors that are not
/// indexed, and returns the number of warnings. Throws Stopped. Throws Error if no vector can be
/// indexed, or if the existing file is not an index, is damaged, or has another VectorKind.
long build_index(const IndexOptions& options, share::Slots& slots, Progress& progress,
                 io::ManifestWriter& manifest);

}  // namespace vfm::columns

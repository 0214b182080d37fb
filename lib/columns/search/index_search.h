// vfm-embed search --index: finds the samples nearest to a text, a video, a picture or each of many
// vectors, without reading all samples.
//
// The codes in the lists of the nearest centres are compared first, at least a sixteenth of all
// codes. Then the vectors of the best thousand or more are read from their tars (halves) and
// compared exactly. With `exact` all indexed vectors are compared exactly. Memory: the needed parts
// of the index are mapped; other memory does not grow with the index.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/progress.h"
#include "columns/search/search.h"
#include "io/manifest.h"
#include "share/slots.h"

namespace vfm::columns {

/// Returns true if the query is a file of vectors to search for, with a vector in each row.
bool is_vectors_file(const std::string& query);

/// Writes matches as search() does. If the query is a file of vectors, each match has "query", the
/// row's number from 0. Skips shards that are missing or have changed since they were indexed, with
/// a warning, and returns their number. Throws Error if the index is missing or damaged, or the
/// query cannot be compared with the index's vectors.
long search_index(const SearchOptions& options, share::Slots& slots, Progress& progress,
                  io::ManifestWriter& manifest);

}  // namespace vfm::columns

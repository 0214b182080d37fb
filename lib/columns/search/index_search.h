// vfm-embed search --index: finds the samples nearest to a text, a video, a picture or each vector
// of a file, without reading all samples.
//
// A search first compares at least a sixteenth of all codes, from the lists of the nearest centres.
// Then the search reads the vectors of at least the thousand best codes from the tars, and compares
// these vectors exactly. If `exact` is true, all indexed vectors are compared exactly.
// Only the needed parts of the index are mapped into memory. Other memory does not grow with the
// index.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/progress.h"
#include "columns/search/search.h"
#include "io/manifest.h"
#include "share/slots.h"

namespace vfm::columns {

/// Returns whether the query is a file with a vector in each row.
bool is_vectors_file(const std::string& query);

/// Writes the records of search(). If the query is a file of vectors, a record also has "query",
/// the number of the vector's row in the file (from 0). Skips shards that are missing or have
/// changed since they were indexed, with a warning, and returns the number of skipped shards.
/// Throws Error if the index is missing or damaged, or if the query cannot be compared with the
/// index's vectors.
long search_index(const SearchOptions& options, share::Slots& slots, Progress& progress,
                  io::ManifestWriter& manifest);

}  // namespace vfm::columns

// vfm-embed search --index: the samples nearest to a text, a video, a picture, or to many
// vectors, without reading all of them.
//
// It compares the codes of the lists with the nearest centres, at least a sixteenth of all codes,
// and then the best thousand or more exactly, by the halves in their tars. With `exact` each vector
// of the index is read from its tar and compared.
// Memory: the needed parts of the index are mapped; the rest does not grow with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/progress.h"
#include "columns/search/search.h"
#include "io/manifest.h"
#include "share/slots.h"

namespace vfm::columns {

/// True if the query names a file of vectors to search for, one a row.
bool is_vectors_file(const std::string& query);

/// Writes matches as search() does; with "query", the row's number from 0, where the query is a
/// file of vectors. Shards that changed or went away since they were indexed give no match: each
/// is warned of and counted; returns their number. Throws Error: no index, or a damaged one; a
/// query that cannot be compared with its vectors.
long search_index(const SearchOptions& options, share::Slots& slots, Progress& progress,
                  io::ManifestWriter& manifest);

}  // namespace vfm::columns

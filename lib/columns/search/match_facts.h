// The facts that `vfm-embed search` prints about a match, besides rank and score.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "columns/search/stored_vectors.h"
#include "io/manifest.h"
#include "shard/reader.h"
#include "shard/sample.h"

namespace vfm::columns {

/// Returns the tars to read for a search. If the shard has an embed column, the tar with videos is
/// left out. The record must have "columns".
std::vector<std::string> searched_tars(const io::Record& record);

/// Adds "caption", "source", "begin" and "end" of `facts`, except fields that `line` already has.
void add_facts(Json& line, const Json& facts);

/// Adds facts from the clip's own json, which is in sample `row` of `tar`. Does nothing if the tar
/// has no index.
void add_clip_facts(Json& line, const std::string& key, const std::string& tar, std::int64_t row);

/// Adds "window", which describes the clip's window (columns/embed/clip_windows.h) nearest to the
/// unit vector `query`. Of equally near windows, the first is described. "window" has "number"
/// (from 0), "begin" and "end" (in seconds from the clip's first frame), and "score". `facts` is
/// the sample's json. If the sample has no windows, adds nothing. Throws Error, which names the
/// sample, if its stored windows are inconsistent.
void add_window(Json& line, const shard::Sample& sample, const Json& facts,
                const std::vector<float>& query);

/// Returns {"key":…,"path":…,"caption":…} and other known facts of a sample, from all searched
/// tars. `row` is the number of the sample in vectors_tar(). If `kind` is video, adds "window".
/// Throws Error.
Json match_facts(const io::Record& record, std::int64_t row, VectorKind kind,
                 const std::vector<float>& query, const shard::ReadLimits& limits);

/// Returns the record to print: rank, score rounded to four digits, and `facts`.
Json match_line(std::size_t rank, double score, const Json& facts);

}  // namespace vfm::columns

// The facts that vfm-embed search prints of a match, beside rank and score.
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

/// The tars to search. If there are small columns, they hold the compared values, so the video need
/// not be read. The record has "columns".
std::vector<std::string> searched_tars(const io::Record& record);

/// Adds caption, source, begin and end from `facts` where `line` lacks them.
void add_facts(Json& line, const Json& facts);

/// Adds facts that only the clip's own json has, sample `row` of `tar`. Does nothing for a tar
/// without an index, which would need a scan.
void add_clip_facts(Json& line, const std::string& key, const std::string& tar, std::int64_t row);

/// Adds which of the clip's windows (columns/embed/clip_windows.h) is nearest to `query`, of length
/// 1, the first of equals: "window": {"number", from 0, "begin", "end", both in seconds from the
/// clip's first frame, "score"}. `facts`: the sample's json. Nothing for a sample without windows.
/// Throws Error, naming the sample, where its stored windows are inconsistent.
void add_window(Json& line, const shard::Sample& sample, const Json& facts,
                const std::vector<float>& query);

/// {"key":…,"path":…,"caption":…} and the other known facts of the sample with its vector at `row`
/// of vectors_tar(), from all searched tars. With its window if `kind` is video. Throws Error.
Json match_facts(const io::Record& record, std::int64_t row, VectorKind kind,
                 const std::vector<float>& query, const shard::ReadLimits& limits);

/// The whole line: rank, score rounded to four digits, and the facts.
Json match_line(std::size_t rank, double score, const Json& facts);

}  // namespace vfm::columns

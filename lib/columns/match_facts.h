// What --search prints of a sample that was found, beside rank and score.
// Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "io/manifest.h"
#include "shard/reader.h"

namespace vfm::columns {

/// The tars that are searched. The small columns hold what is compared, where there are any: the
/// video need not be read. The record has "columns".
std::vector<std::string> searched_tars(const io::Record& record);

/// Adds caption, source, begin and end that `facts` has and `line` has not.
void add_facts(Json& line, const Json& facts);

/// Adds what only the clip's own json knows, sample `row` of `tar`. Without an index it is not
/// worth a scan of the tar.
void add_clip_facts(Json& line, const std::string& key, const std::string& tar, std::int64_t row);

/// {"key":…,"path":…,"caption":…} and what else is known of the sample that has its vector at `row`
/// of vectors_tar(): read from all searched tars. Throws Error.
Json match_facts(const io::Record& record, std::int64_t row, const shard::ReadLimits& limits);

/// The whole line: rank, score rounded to four digits, and the facts.
Json match_line(std::size_t rank, double score, const Json& facts);

}  // namespace vfm::columns

// The amount of work, if known beforehand, for progress.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/manifest.h"

namespace vfm::shard {

/// The number of records of kind "video" that these arguments of io::ManifestReader name; 0 if
/// unknown, because they are on standard input. Bad lines count nothing.
std::uint64_t count_videos(const std::vector<std::string>& inputs);
/// The number of samples of the shards that they name, from records or indexes; 0 if one is
/// unknown.
std::uint64_t count_samples(const std::vector<std::string>& inputs);
/// The number of the shards; 0 if it is not known.
std::uint64_t count_shards(const std::vector<std::string>& inputs);

/// Samples of one shard's record, from it or its index, or counted. Throws Error if it cannot be
/// read.
double sample_count(const io::Record& record);
/// Seconds of video in its samples, from the JSON of the first 64, scaled.
double video_seconds(const io::Record& record);

}  // namespace vfm::shard

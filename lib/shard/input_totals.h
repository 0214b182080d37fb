// How much there is to do, where that can be known before it is done: for progress.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/manifest.h"

namespace vfm::shard {

/// The number of records of kind "video" that these arguments of io::ManifestReader name; 0 if it
/// is not known, since they are on standard input. Bad lines count nothing.
std::uint64_t count_videos(const std::vector<std::string>& inputs);
/// The number of samples of the shards that they name, as the records or indexes say; 0 if one does
/// not.
std::uint64_t count_samples(const std::vector<std::string>& inputs);
/// The number of the shards; 0 if it is not known.
std::uint64_t count_shards(const std::vector<std::string>& inputs);

/// Samples of one shard's record, as it or its index says, or counted. Throws Error where it cannot
/// be read.
double sample_count(const io::Record& record);
/// Seconds of video in its samples, as their JSON says: those of the first 64, scaled.
double video_seconds(const io::Record& record);

}  // namespace vfm::shard

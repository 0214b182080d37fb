// Counts the work in a tool's input before the tool starts, to show progress.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/manifest.h"

namespace vfm::shard {

/// Returns the number of records of kind "video" in `inputs`. Returns 0 if the number is unknown,
/// as for standard input. `inputs` are the arguments of io::ManifestReader.
std::uint64_t count_videos(const std::vector<std::string>& inputs);
/// Returns the number of samples in all shards of the input. Returns 0 if the number of any shard
/// is unknown.
std::uint64_t count_samples(const std::vector<std::string>& inputs);
/// Returns the number of the input's shards, or 0 if this number is unknown.
std::uint64_t count_shards(const std::vector<std::string>& inputs);

/// Returns the number of samples of one shard, from its record or index, or by counting. Throws
/// Error if the shard cannot be read.
double sample_count(const io::Record& record);
/// Returns the seconds of video in a shard, estimated from the JSON of its first 64 samples.
double video_seconds(const io::Record& record);

}  // namespace vfm::shard

// .nv-meta/index.sqlite of Megatron-Energon: where every sample and member of a dataset is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shard/dataset_meta.h"

namespace vfm::shard {

/// Writes `path` atomically from the indexes of the shards under `directory`: tables samples,
/// sample_parts, media_metadata and media_filters (empty). The same bytes for the same shards and
/// the same SQLite. Throws Error; "key ... comes twice" when a key is in two shards.
void write_energon_index(const std::string& directory, const std::string& path,
                         const DatasetShards& shards, const MediaOf& media);

}  // namespace vfm::shard

// Writes .nv-meta/index.sqlite of Megatron-Energon, which has the position of every sample and
// member.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shard/dataset_meta.h"

namespace vfm::shard {

/// Writes `path` atomically from the indexes of the shards under `directory`. The same shards and
/// SQLite version give the same bytes. Throws Error; the message is "key ... comes twice" if two
/// shards have the same key.
void write_energon_index(const std::string& directory, const std::string& path,
                         const DatasetShards& shards, const MediaOf& media);

}  // namespace vfm::shard

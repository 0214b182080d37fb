// Writes .nv-meta/index.sqlite of Megatron-Energon, which has the position of every sample and
// member.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shard/dataset_meta.h"
#include "shard/sample_list.h"

namespace vfm::shard {

/// Writes `path` atomically from the indexes of the shards under `directory`, and `list`, unless it
/// is null. The same shards and SQLite version give the same bytes. Throws Error, for example if
/// two shards have the same key ("key ... comes twice").
void write_energon_index(const std::string& directory, const std::string& path,
                         const DatasetShards& shards, const MediaOf& media, SampleListWriter* list);

}  // namespace vfm::shard
